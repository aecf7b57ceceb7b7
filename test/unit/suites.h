/* The makers of all suites, for main.c and for the files that define them. */
#ifndef TP_SUITES_H
#define TP_SUITES_H

#include <check.h>

#define SUITE(maker) Suite *maker(void);
#include "suites.def"
#undef SUITE

#endif
