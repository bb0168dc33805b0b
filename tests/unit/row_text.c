#include "row_text.h"

#include <inttypes.h>

static void print_rule(FILE *out, uint8_t reg, const struct rule *rule)
{
	switch ((enum rule_kind)rule->kind) {
	case RULE_UNSPECIFIED:
	case RULE_UNDEFINED:
		break;
	case RULE_SAME:
		fprintf(out, " %u=s", reg);
		break;
	case RULE_OFFSET:
		fprintf(out, " %u=c%+" PRId64, reg, rule->offset);
		break;
	case RULE_VAL_OFFSET:
		fprintf(out, " %u=v%+" PRId64, reg, rule->offset);
		break;
	case RULE_REGISTER:
		fprintf(out, " %u=r%" PRIu64, reg, rule->reg);
		break;
	case RULE_EXPRESSION:
		fprintf(out, " %u=exp", reg);
		break;
	case RULE_VAL_EXPRESSION:
		fprintf(out, " %u=vexp", reg);
		break;
	}
}

void row_print(FILE *out, const struct row *row)
{
	if (row->cfa.kind == CFA_REGISTER)
		fprintf(out, "%" PRIu64 "%+" PRId64, row->cfa.reg, row->cfa.offset);
	else
		fputs(row->cfa.kind == CFA_EXPRESSION ? "exp" : "none", out);
	for (uint8_t reg = 0; reg < ARCH_DWARF_REGS; reg++)
		print_rule(out, reg, &row->rules[reg]);
}
