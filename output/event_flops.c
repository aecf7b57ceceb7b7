#include "event_flops.h"

#include "inputs.h"

static void take_sizes(struct tp_flops_input *ret, const struct tp_input *tensor)
{
    int64_t sizes[TP_INPUT_DIMENSIONS_MAX];
    size_t count = tp_input_sizes(tensor, sizes);
    uint64_t elements = 1;
    for (size_t i = 0; i < count; i++) {
        if (i < TP_FLOPS_DIMS)
            ret->dim[i] = sizes[i];
        elements *= (uint64_t)sizes[i];
    }
    ret->tensor = true;
    ret->dims = (uint32_t)count;
    ret->elements = (int64_t)elements;
}

static bool is_whole(const struct tp_input *input)
{
    return input->kind == TP_INPUT_INT || input->kind == TP_INPUT_BOOL;
}

static struct tp_flops_input read_input(const struct tp_input *input, struct tp_input_cursor *elements)
{
    struct tp_flops_input ret = {.elements = 1};
    struct tp_input element;
    bool whole = true;
    if (input->kind == TP_INPUT_TENSOR)
        take_sizes(&ret, input);
    if (is_whole(input)) {
        ret.value = TP_FLOPS_SCALAR;
        ret.number[0] = input->integer;
    }
    for (uint32_t i = 0; i < tp_input_elements(input) && tp_input_next(elements, &element); i++) {
        whole &= is_whole(&element);
        if (i < TP_FLOPS_NUMBERS)
            ret.number[i] = element.integer;
    }
    if (input->kind == TP_INPUT_SCALARS && whole) {
        ret.value = TP_FLOPS_LIST;
        ret.numbers = input->count;
    }
    return ret;
}

uint64_t tp_event_flops(const struct tp_event *event, enum tp_flops_formulas formulas)
{
    if (event->input_count == 0 || !tp_flops_knows(event->name, event->name_bytes, formulas))
        return 0;
    struct tp_input_cursor cursor = {event->inputs, event->inputs + event->input_words};
    struct tp_flops_input inputs[TP_FLOPS_INPUTS];
    struct tp_input input;
    size_t count = 0;
    for (; count < TP_FLOPS_INPUTS && tp_input_next(&cursor, &input); count++)
        inputs[count] = read_input(&input, &cursor);
    return tp_flops(event->name, event->name_bytes, inputs, count, formulas);
}
