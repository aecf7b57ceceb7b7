/* suites.h: tests of the simulated GPU itself. */
#pragma once

#include <check.h>

#define SUITE(maker) Suite *maker(void);
#include "suites.def"
#undef SUITE
