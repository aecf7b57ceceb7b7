#include "tensor.h"

#include "../../agent/log.h"
#include "../../agent/ring.h"

bool tp_tensor_attach(struct tp_torch_abi *abi)
{
    struct tp_error error = {0};
    if (tp_torch_calibrate_inputs(abi, &error) == 0)
        return true;
    char line[400];
    tp_error_line(&error, line, sizeof line);
    tp_log(TP_LOG_WARN, "%s; operators are recorded without them", line);
    return false;
}

/* Words of items that are being written; past the end nothing is written, and `at` says what would have been needed. */
struct items {
    uint64_t *at, *end;
};

static inline void put(struct items *items, uint64_t word)
{
    if (TP_LIKELY(items->at < items->end))
        *items->at = word;
    items->at++;
}

/* 64 bits each, or two in a word. */
static void put_numbers(struct items *items, const int64_t *numbers, size_t count, bool wide)
{
    if (TP_UNLIKELY(wide)) {
        for (size_t i = 0; i < count; i++)
            put(items, (uint64_t)numbers[i]);
        return;
    }
    size_t i = 0;
    for (; i + 1 < count; i += 2)
        put(items, (uint64_t)(uint32_t)numbers[i] | (uint64_t)numbers[i + 1] << 32);
    if (i < count)
        put(items, (uint64_t)(uint32_t)numbers[i]);
}

static void put_tensor(struct items *items, const struct tp_torch_tensor *tensor)
{
    unsigned flags = tp_tensor_flags(tensor->sizes, tensor->strides, tensor->dimensions);
    bool wide = flags & TP_INPUT_WIDE;
    put(items, tp_input_word(TP_INPUT_TENSOR, tensor->type, (unsigned)tensor->dimensions, flags, 0));
    put_numbers(items, tensor->sizes, tensor->dimensions, wide);
    if (!(flags & (TP_INPUT_UNSTRIDED | TP_INPUT_CONTIGUOUS)))
        put_numbers(items, tensor->strides, tensor->dimensions, wide);
}

/* What the format can hold: the program may make stranger tensors. */
static bool can_be_put(const struct tp_torch_tensor *tensor)
{
    return tensor->dimensions <= UINT8_MAX && tensor->type <= UINT8_MAX;
}

static void put_value(struct items *items, const struct tp_torch_inputs *abi, enum tp_torch_kind kind,
                      const char *value)
{
    struct tp_torch_tensor tensor;
    uint64_t payload = tp_torch_u64(value, 0);
    switch (kind) {
    case TP_TORCH_TENSOR:
        if (tp_torch_tensor(abi, value, &tensor) && can_be_put(&tensor))
            put_tensor(items, &tensor);
        else
            put(items, TP_INPUT_UNDEFINED);
        return;
    case TP_TORCH_INT:
        if (TP_LIKELY((int64_t)payload == (int32_t)payload)) {
            put(items, tp_input_word(TP_INPUT_INT, 0, 0, 0, (uint32_t)payload));
        } else {
            put(items, tp_input_word(TP_INPUT_INT, 0, 0, TP_INPUT_WIDE, 0));
            put(items, payload);
        }
        return;
    case TP_TORCH_DOUBLE:
        put(items, TP_INPUT_DOUBLE);
        put(items, payload);
        return;
    case TP_TORCH_BOOL:
        put(items, tp_input_word(TP_INPUT_BOOL, 0, 0, 0, (uint8_t)payload != 0));
        return;
    case TP_TORCH_COMPLEX: {
        const void *holder = tp_torch_pointer(value, 0);
        put(items, TP_INPUT_COMPLEX);
        put(items, tp_torch_u64(holder, abi->complex));
        put(items, tp_torch_u64(holder, (size_t)abi->complex + 8));
        return;
    }
    case TP_TORCH_SYMBOL:
        put(items, TP_INPUT_SYMBOL);
        return;
    default:
        put(items, TP_INPUT_OTHER);
    }
}

static bool is_number(enum tp_torch_kind kind)
{
    return kind != TP_TORCH_OTHER && kind != TP_TORCH_TENSOR && kind != TP_TORCH_LIST;
}

/* As torch shows it: all of them are tensors with sizes, or the list is nothing that is shown. */
static bool all_tensors(const struct tp_torch_inputs *abi, const struct tp_torch_list *list)
{
    struct tp_torch_tensor tensor;
    for (size_t i = 0; i < list->count; i++) {
        const char *value = list->values + i * TP_TORCH_VALUE_BYTES;
        if (tp_torch_kind(abi, value) != TP_TORCH_TENSOR || !tp_torch_tensor(abi, value, &tensor) ||
            !can_be_put(&tensor))
            return false;
    }
    return true;
}

/* Does torch show it as a list of numbers? */
static bool shows_numbers(const struct tp_torch_inputs *abi, const struct tp_torch_list *list)
{
    return list->count == 0 || (list->count <= TP_INPUT_LIST_MAX && is_number(tp_torch_kind(abi, list->values)));
}

static TP_COLD void put_list(struct items *items, const struct tp_torch_inputs *abi, const char *value)
{
    struct tp_torch_list list;
    tp_torch_list(abi, value, &list);
    if (list.tensors ? !all_tensors(abi, &list) : !shows_numbers(abi, &list)) {
        put(items, TP_INPUT_OTHER);
        return;
    }
    bool is_long = list.count > TP_INPUT_LIST_MAX;
    put(items, tp_input_word(list.tensors ? TP_INPUT_TENSORS : TP_INPUT_SCALARS, 0, 0, is_long ? TP_INPUT_LONG : 0,
                             (uint32_t)list.count));
    for (size_t i = 0; !is_long && i < list.count; i++) {
        value = list.values + i * TP_TORCH_VALUE_BYTES;
        enum tp_torch_kind kind = tp_torch_kind(abi, value);
        put_value(items, abi, kind == TP_TORCH_LIST ? TP_TORCH_OTHER : kind, value);
    }
}

/* The items of all inputs. Where they are more than the format holds, the first ones; then *ret_cut. */
static void put_all(struct items *items, const struct tp_torch_inputs *abi, const char *values, size_t count,
                    bool *ret_cut)
{
    uint64_t *begin = items->at;
    for (size_t i = 0; i < count; i++) {
        uint64_t *before = items->at;
        const char *value = values + i * TP_TORCH_VALUE_BYTES;
        enum tp_torch_kind kind = tp_torch_kind(abi, value);
        if (TP_UNLIKELY(kind == TP_TORCH_LIST))
            put_list(items, abi, value);
        else
            put_value(items, abi, kind, value);
        if (TP_UNLIKELY(items->at - begin > TP_INPUTS_ITEMS_MAX)) {
            items->at = before;
            *ret_cut = true;
            return;
        }
    }
}

static void put_head(uint64_t *at, const void *record_function, unsigned words, struct tp_inputs like)
{
    like.head = tp_record_head(TP_RECORD_INPUTS, TP_INPUTS_WORDS + words, (uintptr_t)record_function);
    memcpy(at, &like, sizeof like);
}

/* More items than one record holds: moves those of each further record up, behind a head of its own. The last first. */
static TP_COLD unsigned split(uint64_t *at, const void *record_function, struct tp_inputs like)
{
    enum { PART = TP_RECORD_MAX_WORDS - TP_INPUTS_WORDS };
    unsigned parts = (like.words + PART - 1) / PART;
    for (unsigned part = parts; part-- > 0;) {
        unsigned words = part == parts - 1 ? like.words - part * PART : PART;
        uint64_t *to = at + part * TP_RECORD_MAX_WORDS;
        memmove(to + TP_INPUTS_WORDS, at + TP_INPUTS_WORDS + part * PART, words * sizeof *to);
        like.offset = (uint16_t)(part * PART);
        put_head(to, record_function, words, like);
    }
    return like.words + parts * TP_INPUTS_WORDS;
}

unsigned tp_tensor_write(const struct tp_torch_inputs *abi, const void *record_function, const struct tp_torch_values *values,
                         uint64_t *at, size_t room)
{
    size_t count = values->count;
    if (count == 0)
        return 0;
    bool cut = count > TP_INPUTS_COUNT_MAX;
    if (TP_UNLIKELY(cut))
        count = TP_INPUTS_COUNT_MAX;
    uint64_t *begin = at + TP_INPUTS_WORDS;
    struct items items = {begin, room > TP_INPUTS_WORDS ? at + room : begin};
    put_all(&items, abi, values->at, count, &cut);
    unsigned words = (unsigned)(items.at - begin);
    struct tp_inputs like = {
        .count = (uint16_t)count, .words = (uint16_t)words, .flags = cut ? TP_INPUTS_CUT : 0};
    if (TP_LIKELY(words <= TP_RECORD_MAX_WORDS - TP_INPUTS_WORDS)) {
        if (TP_LIKELY(words + TP_INPUTS_WORDS <= room))
            put_head(at, record_function, words, like);
        return words + TP_INPUTS_WORDS;
    }
    unsigned parts = (words + TP_RECORD_MAX_WORDS - TP_INPUTS_WORDS - 1) / (TP_RECORD_MAX_WORDS - TP_INPUTS_WORDS);
    unsigned all = words + parts * TP_INPUTS_WORDS;
    return all <= room ? split(at, record_function, like) : all;
}

unsigned tp_tensor_write_ahead(const struct tp_torch_inputs *abi, const void *record_function,
                               const struct tp_torch_values *values, struct tp_thread *thread, unsigned ahead)
{
    static uint64_t nowhere[TP_INPUTS_WORDS]; /* nothing is written there */
    if (TP_UNLIKELY(!thread->next)) /* its first record */
        return tp_tensor_write(abi, record_function, values, nowhere, 0);
    ptrdiff_t room = thread->begin_end - thread->next - TP_END_WORDS - (ptrdiff_t)ahead;
    return tp_tensor_write(abi, record_function, values, thread->next + ahead, room > 0 ? (size_t)room : 0);
}
