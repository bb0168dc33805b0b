/*
 * Rows of call frame tables in words: "CFA [REG=RULE ...]". CFA is REG+OFFSET, exp or none; RULE is s
 * (same), c+N (at CFA + N), v+N (is CFA + N), rN (in register N), exp, vexp. Registers without a rule
 * and undefined ones are left out.
 */
#ifndef STACKER_TESTS_ROW_TEXT_H
#define STACKER_TESTS_ROW_TEXT_H

#include <stdio.h>

#include "unwind/row.h"

void row_print(FILE *out, const struct row *row);

#endif
