# Where the processor starts, in ROM: a stack at the end of the RAM for it, then main().
  .section .start, "ax"
  .globl _start
_start:
  li sp, END_OF_STACK
  call main
