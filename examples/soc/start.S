# Where the processor starts, in ROM: a stack at the end of the RAM for it, then main().
  .section .start, "ax"
  .globl _start
_start:
  la sp, end_of_stack
  call main
