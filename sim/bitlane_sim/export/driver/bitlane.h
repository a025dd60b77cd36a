/* Drives a bitlane core: submits commands, waits for them, clears the core after a fault.
 *
 * Freestanding C99: no library, no memory but `struct bitlane`, nothing that blocks without a
 * deadline. It never touches the tensors: whoever has a cache writes it back before
 * bitlane_submit(), and discards it before the result is read.
 *
 * One thread at a time may use a core; meanwhile an interrupt may call bitlane_acknowledge() and
 * bitlane_look().
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef BITLANE_H
#define BITLANE_H

#include <stdint.h>

#include "bitlane_registers.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A core. Who uses it reads these numbers, and writes none. */
struct bitlane {
  uintptr_t window;       /* where this processor sees the control window */
  uint32_t slots;         /* of its ring */
  uint32_t submitted;     /* commands since reset or CLEAR, modulo 2^16 */
  uint32_t retired;       /* of them, when the core was last looked at */
  uint32_t fault;         /* register FAULT when a function said STOPPED: BITLANE_FAULT_* */
  uint32_t fault_address; /* register FAULT_ADDRESS at that time */
  uint32_t looks;         /* that BITLANE_NOW has counted */
};

enum bitlane_result {
  BITLANE_DONE,       /* nothing is left to wait for */
  BITLANE_BUSY,       /* commands have not retired; of bitlane_submit(): the ring is full */
  BITLANE_LATE,       /* the deadline has passed */
  BITLANE_STOPPED,    /* a command failed: see `fault`, then bitlane_clear() */
  BITLANE_NO_CORE,    /* no core of this version is there */
  BITLANE_BAD_COMMAND /* `loops` is outside 1 to BITLANE_MAX_LOOPS */
};

/* How one stream walks through memory, in bytes. */
struct bitlane_walk {
  uint32_t base;  /* address of the first element */
  uint32_t last;  /* highest address of a byte that the command touches */
  uint32_t mode;  /* BITLANE_MODE_* */
  int32_t stride; /* from an element of a run to the next, if STRIDED */
  int32_t jumps[BITLANE_MAX_LOOPS - 1]; /* one a loop outside the run, innermost first */
};

/* A command. `b` is ignored if the operation has one operand, and of `counts` and `jumps` all
 * beyond `loops`. BITLANE_WORD_* and BITLANE_CONTROL_* tell what each number may be.
 */
struct bitlane_command {
  uint32_t op;       /* BITLANE_OP_* */
  uint32_t lane;     /* BITLANE_LANE_*, of A and B */
  uint32_t out_lane; /* BITLANE_LANE_*, of Y */
  uint32_t saturate, arithmetic, fence, interrupt, test, negate; /* 0 or 1 */
  uint32_t run;   /* elements in a run */
  uint32_t loops; /* nested loops in use, the run included */
  uint32_t counts[BITLANE_MAX_LOOPS - 1]; /* iterations of the others, innermost first */
  struct bitlane_walk a, b, y;
};

/* Make `device` the core whose control window is at `window`. It is used as it is found: a core
 * that somebody else has used is to be cleared first. DONE or NO_CORE.
 */
enum bitlane_result bitlane_open(struct bitlane *device, uintptr_t window);

/* Make of `command` a logic operation, or a COUNT of bytes, on `bytes` consecutive ones: Y = A op B.
 * FENCE is set, so that it may use what an earlier command writes; so is INTERRUPT.
 */
void bitlane_dense(struct bitlane_command *command, uint32_t op, uint32_t bytes);

/* Where the streams of a command of bitlane_dense() are; `b` counts if the operation has one. */
void bitlane_place(struct bitlane_command *command, uint32_t y, uint32_t a, uint32_t b);

/* The words of the record that `command` uses; how many, or 0 if it is a BAD_COMMAND. */
uint32_t bitlane_encode(const struct bitlane_command *command,
                        uint32_t words[BITLANE_RECORD_WORDS]);

/* Put `command` behind those submitted before. DONE says that it is submitted; else it is not:
 * BUSY, STOPPED or BAD_COMMAND.
 */
enum bitlane_result bitlane_submit(struct bitlane *device, const struct bitlane_command *command);

/* Whether all commands that were submitted have retired, now: DONE, BUSY or STOPPED. */
enum bitlane_result bitlane_look(struct bitlane *device);

/* Wait until they have, for `ticks` of BITLANE_NOW at most: DONE, LATE or STOPPED. */
enum bitlane_result bitlane_wait(struct bitlane *device, uint32_t ticks);

/* Drop every command that has not retired, and start afresh: DONE, or LATE if the memory's bus has
 * not drained within `ticks`. Nothing may be submitted before it is DONE.
 */
enum bitlane_result bitlane_clear(struct bitlane *device, uint32_t ticks);

/* Let the interrupt line rise from now on, or keep it down. */
void bitlane_interrupt(struct bitlane *device, int enable);

/* Take the interrupt back; 1 if there was one. What retires from now on raises it again. */
int bitlane_acknowledge(struct bitlane *device);

#ifdef __cplusplus
}
#endif

#endif
