#include "catch.h"

#include <dlfcn.h>
#include <unwind.h>

/* Of the runtime that the program has: it made the contexts that it is asked about. */
static struct {
    void (*set_register)(struct _Unwind_Context *, int, _Unwind_Word);
    void (*set_address)(struct _Unwind_Context *, _Unwind_Ptr);
    void *(*begin_catch)(void *);
    void (*end_catch)(void);
} runtime;

#ifdef __x86_64__
#define CATCHES true

/* Named in the assembler's text, which defines tp_catch. */
_Unwind_Reason_Code tp_catch_personality(int version, _Unwind_Action actions, _Unwind_Exception_Class class,
                                         struct _Unwind_Exception *exception, struct _Unwind_Context *context);
void tp_catch_forget(void *exception);
extern const char tp_catch_landing[];

__asm__("    .text\n"
        "    .hidden tp_catch_personality, tp_catch_forget, tp_catch_landing\n"
        "    .globl tp_catch, tp_catch_landing\n"
        "    .hidden tp_catch\n"
        "    .type tp_catch, @function\n"
        "tp_catch:\n"
        "    .cfi_startproc\n"
        "    .cfi_personality 0x1b, tp_catch_personality\n" /* relative, 4 bytes */
        "    push %rbp\n"
        "    .cfi_def_cfa_offset 16\n"
        "    .cfi_offset %rbp, -16\n"
        "    mov %rsp, %rbp\n"
        "    .cfi_def_cfa_register %rbp\n"
        "    mov %rdi, %rax\n"
        "    mov %rsi, %rdi\n"
        "    call *%rax\n"
        "    mov $1, %eax\n"
        "    jmp 1f\n"
        "tp_catch_landing:\n"
        "    mov %rax, %rdi\n"
        "    call tp_catch_forget\n"
        "    xor %eax, %eax\n"
        "1:  pop %rbp\n"
        "    .cfi_def_cfa %rsp, 8\n"
        "    ret\n"
        "    .cfi_endproc\n"
        "    .size tp_catch, . - tp_catch\n");

__attribute__((used)) void tp_catch_forget(void *exception)
{
    runtime.begin_catch(exception);
    runtime.end_catch();
}

/* Cancellation and pthread_exit go on to where they lead. */
__attribute__((used)) _Unwind_Reason_Code tp_catch_personality(int version, _Unwind_Action actions,
                                                               _Unwind_Exception_Class class,
                                                               struct _Unwind_Exception *exception,
                                                               struct _Unwind_Context *context)
{
    (void)version;
    (void)class;
    if (actions & _UA_FORCE_UNWIND)
        return _URC_CONTINUE_UNWIND;
    if (actions & _UA_SEARCH_PHASE)
        return _URC_HANDLER_FOUND;
    if (!(actions & _UA_HANDLER_FRAME))
        return _URC_CONTINUE_UNWIND;
    runtime.set_register(context, __builtin_eh_return_data_regno(0), (uintptr_t)exception);
    runtime.set_address(context, (uintptr_t)tp_catch_landing);
    return _URC_INSTALL_CONTEXT;
}

#else
#define CATCHES false

bool tp_catch(void (*body)(void *argument), void *argument)
{
    body(argument);
    return true;
}

#endif

bool tp_catch_find(void *library)
{
    *(void **)&runtime.set_register = dlsym(library, "_Unwind_SetGR");
    *(void **)&runtime.set_address = dlsym(library, "_Unwind_SetIP");
    *(void **)&runtime.begin_catch = dlsym(library, "__cxa_begin_catch");
    *(void **)&runtime.end_catch = dlsym(library, "__cxa_end_catch");
    return CATCHES && runtime.set_register && runtime.set_address && runtime.begin_catch && runtime.end_catch;
}
