/* Linked in the sandbox's place (ld --wrap) where a program has to write more than its output when it
 * ends: what code it ran. See mk/coverage.mk. */
void __wrap_sandbox_enter(const char *const *writable);

void __wrap_sandbox_enter(const char *const *writable)
{
	(void)writable;
}
