/* The same on both architectures: returns a constant. Its lines come from the assembler. */
	.text
	.globl assembled
	.type assembled, %function
assembled:
#ifdef __aarch64__
	mov w0, #1
	add w0, w0, #2
	ret
#else
	movl $1, %eax
	addl $2, %eax
	ret
#endif
	.size assembled, . - assembled
	.section .note.GNU-stack, "", %progbits
