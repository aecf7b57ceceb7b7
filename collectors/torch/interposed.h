/* interposed.h: operators and user ranges by interposed functions (interposed.c). */
#ifndef TP_TORCH_INTERPOSED_H
#define TP_TORCH_INTERPOSED_H

/* tp_torch_ranges is set. From here on ranges are observed as the hook word says. NULL, or why this way cannot be used
 * here: then nothing has changed. */
const char *tp_torch_interposed_attach(void);

#endif
