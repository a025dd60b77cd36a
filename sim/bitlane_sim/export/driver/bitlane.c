/* See bitlane.h. What differs between systems are macros, which the header file that
 * BITLANE_PLATFORM names (-DBITLANE_PLATFORM='"platform.h"') may define:
 *
 *   BITLANE_READ(address)           a word of the control window, at an address of this CPU's
 *   BITLANE_WRITE(address, value)
 *   BITLANE_NOW(device)             a clock of 32 bits that wraps, the unit of deadlines; without
 *                                   one, looks at the core are counted
 *   BITLANE_BARRIER()               what is stored before it is in memory before a later
 *                                   BITLANE_WRITE, and what is loaded after it is read after an
 *                                   earlier BITLANE_READ; without one, the compiler alone keeps
 *                                   this order
 *
 * SPDX-License-Identifier: MIT
 */

#include "bitlane.h"

#ifdef BITLANE_PLATFORM
#include BITLANE_PLATFORM
#endif

#ifndef BITLANE_READ
#define BITLANE_READ(address) (*(const volatile uint32_t *)(address))
#endif
#ifndef BITLANE_WRITE
#define BITLANE_WRITE(address, value) (*(volatile uint32_t *)(address) = (value))
#endif
#ifndef BITLANE_NOW
#define BITLANE_NOW(device) (++(device)->looks)
#endif
#ifndef BITLANE_BARRIER
#ifdef __GNUC__
#define BITLANE_BARRIER() __asm__ volatile("" ::: "memory")
#else
#define BITLANE_BARRIER() ((void)0)
#endif
#endif

static uint32_t get(const struct bitlane *device, uint32_t offset) {
  return BITLANE_READ(device->window + offset);
}

static void set(const struct bitlane *device, uint32_t offset, uint32_t value) {
  BITLANE_WRITE(device->window + offset, value);
}

/* Where a stream's numbers stand in a record. */
struct places {
  uint32_t base, last, stride, jump;
};

#define PLACES(stream)                                                                             \
  {BITLANE_WORD_##stream##_BASE, BITLANE_WORD_##stream##_LAST, BITLANE_WORD_##stream##_STRIDE,     \
   BITLANE_WORD_##stream##_JUMP_1}

static const struct places places_a = PLACES(A), places_b = PLACES(B), places_y = PLACES(Y);

/* What stands in the record of an operation without B. */
static const struct bitlane_walk no_walk = {0, 0, BITLANE_MODE_DENSE, 0, {0}};

static void put_walk(uint32_t *words, const struct places *places, const struct bitlane_walk *walk,
                     uint32_t loops) {
  uint32_t loop;
  words[places->base] = walk->base;
  words[places->last] = walk->last;
  words[places->stride] = walk->mode == BITLANE_MODE_STRIDED ? (uint32_t)walk->stride : 0;
  for (loop = 1; loop < loops; loop++)
    words[places->jump + BITLANE_LOOP_WORDS * (loop - 1)] = (uint32_t)walk->jumps[loop - 1];
}

static uint32_t control_of(const struct bitlane_command *command, uint32_t b_mode) {
  return BITLANE_PUT(command->op, BITLANE_CONTROL_OP) |
         BITLANE_PUT(command->lane, BITLANE_CONTROL_LANE) |
         BITLANE_PUT(command->out_lane, BITLANE_CONTROL_OUT_LANE) |
         BITLANE_PUT(command->a.mode, BITLANE_CONTROL_A_MODE) |
         BITLANE_PUT(b_mode, BITLANE_CONTROL_B_MODE) |
         BITLANE_PUT(command->y.mode, BITLANE_CONTROL_Y_MODE) |
         BITLANE_PUT(command->loops, BITLANE_CONTROL_LOOPS) |
         BITLANE_PUT(command->saturate, BITLANE_CONTROL_SATURATE) |
         BITLANE_PUT(command->arithmetic, BITLANE_CONTROL_ARITHMETIC) |
         BITLANE_PUT(command->fence, BITLANE_CONTROL_FENCE) |
         BITLANE_PUT(command->interrupt, BITLANE_CONTROL_INTERRUPT) |
         BITLANE_PUT(command->test, BITLANE_CONTROL_TEST) |
         BITLANE_PUT(command->negate, BITLANE_CONTROL_NEGATE);
}

/* How many leading words the circuit reads. */
static uint32_t words_of(const struct bitlane_command *command, const struct bitlane_walk *b,
                         int reads_b) {
  if (command->loops > 1 || command->a.mode == BITLANE_MODE_STRIDED ||
      b->mode == BITLANE_MODE_STRIDED || command->y.mode == BITLANE_MODE_STRIDED)
    return BITLANE_WORDS_STRIDED + BITLANE_LOOP_WORDS * (command->loops - 1);
  return reads_b ? BITLANE_WORDS_TWO_OPERANDS : BITLANE_WORDS_ONE_OPERAND;
}

/* The byte that makes all bytes of the words XOR to BITLANE_RECORD_SEAL. */
static uint32_t seal_of(const uint32_t *words, uint32_t count) {
  uint32_t total = 0;
  while (count--) total ^= words[count];
  total ^= total >> 16;
  total ^= total >> 8;
  return total ^ BITLANE_RECORD_SEAL;
}

uint32_t bitlane_encode(const struct bitlane_command *command,
                        uint32_t words[BITLANE_RECORD_WORDS]) {
  const uint32_t op = BITLANE_GET(command->op << BITLANE_CONTROL_OP_SHIFT, BITLANE_CONTROL_OP);
  const int reads_b = BITLANE_OPS_WITH_B >> op & 1;
  const struct bitlane_walk *b = reads_b ? &command->b : &no_walk;
  uint32_t count, loop;
  if (command->loops < 1 || command->loops > BITLANE_MAX_LOOPS) return 0;
  words[BITLANE_WORD_RUN] = command->run;
  words[BITLANE_WORD_RESERVED] = 0;
  put_walk(words, &places_a, &command->a, command->loops);
  put_walk(words, &places_b, b, command->loops);
  put_walk(words, &places_y, &command->y, command->loops);
  for (loop = 1; loop < command->loops; loop++)
    words[BITLANE_WORD_COUNT_1 + BITLANE_LOOP_WORDS * (loop - 1)] = command->counts[loop - 1];
  words[BITLANE_WORD_CONTROL] = control_of(command, b->mode);
  count = words_of(command, b, reads_b);
  words[BITLANE_WORD_CONTROL] |= BITLANE_PUT(seal_of(words, count), BITLANE_CONTROL_SEAL);
  return count;
}

static void make_dense(struct bitlane_walk *walk) {
  walk->mode = BITLANE_MODE_DENSE;
  walk->stride = 0;
}

void bitlane_dense(struct bitlane_command *command, uint32_t op, uint32_t bytes) {
  command->op = op;
  command->lane = command->out_lane = BITLANE_LANE_BITS_8;
  command->saturate = command->arithmetic = command->test = command->negate = 0;
  command->fence = command->interrupt = 1;
  command->run = bytes;
  command->loops = 1;
  make_dense(&command->a);
  make_dense(&command->b);
  make_dense(&command->y);
}

void bitlane_place(struct bitlane_command *command, uint32_t y, uint32_t a, uint32_t b) {
  command->y.base = y;
  command->a.base = a;
  command->b.base = b;
  command->y.last = y + (command->run - 1);
  command->a.last = a + (command->run - 1);
  command->b.last = b + (command->run - 1);
}

enum bitlane_result bitlane_open(struct bitlane *device, uintptr_t window) {
  uint32_t geometry;
  device->window = window;
  device->looks = device->fault = device->fault_address = 0;
  if (get(device, BITLANE_REG_IDENTITY) != BITLANE_IDENTITY ||
      get(device, BITLANE_REG_VERSION) != BITLANE_ABI_VERSION)
    return BITLANE_NO_CORE;
  geometry = get(device, BITLANE_REG_GEOMETRY);
  device->slots = (uint32_t)1 << BITLANE_GET(geometry, BITLANE_GEOMETRY_SLOTS_LOG2);
  device->submitted = BITLANE_GET(get(device, BITLANE_REG_DOORBELL), BITLANE_DOORBELL_COUNT);
  device->retired = BITLANE_GET(get(device, BITLANE_REG_RETIRED), BITLANE_RETIRED_COUNT);
  return BITLANE_DONE;
}

static uint32_t in_flight(const struct bitlane *device) {
  return BITLANE_GET(device->submitted - device->retired, BITLANE_DOORBELL_COUNT);
}

enum bitlane_result bitlane_submit(struct bitlane *device, const struct bitlane_command *command) {
  uint32_t words[BITLANE_RECORD_WORDS], number, slot;
  const uint32_t count = bitlane_encode(command, words);
  if (count == 0) return BITLANE_BAD_COMMAND;
  if (in_flight(device) == device->slots) {
    if (bitlane_look(device) == BITLANE_STOPPED) return BITLANE_STOPPED;
    if (in_flight(device) == device->slots) return BITLANE_BUSY;
  }
  slot = BITLANE_RING_OFFSET + (device->submitted & (device->slots - 1)) * BITLANE_RECORD_BYTES;
  for (number = 0; number < count; number++)
    set(device, slot + number * BITLANE_WORD_BYTES, words[number]);
  device->submitted = BITLANE_GET(device->submitted + 1, BITLANE_DOORBELL_COUNT);
  BITLANE_BARRIER();
  set(device, BITLANE_REG_DOORBELL, device->submitted);
  return BITLANE_DONE;
}

enum bitlane_result bitlane_look(struct bitlane *device) {
  const uint32_t retired = get(device, BITLANE_REG_RETIRED);
  const uint32_t fault = get(device, BITLANE_REG_FAULT);
  BITLANE_BARRIER();
  device->retired = BITLANE_GET(retired, BITLANE_RETIRED_COUNT);
  if (fault) {
    device->fault = fault;
    device->fault_address = get(device, BITLANE_REG_FAULT_ADDRESS);
    return BITLANE_STOPPED;
  }
  return in_flight(device) ? BITLANE_BUSY : BITLANE_DONE;
}

enum bitlane_result bitlane_wait(struct bitlane *device, uint32_t ticks) {
  const uint32_t start = BITLANE_NOW(device);
  enum bitlane_result result;
  while ((result = bitlane_look(device)) == BITLANE_BUSY)
    if ((uint32_t)(BITLANE_NOW(device) - start) > ticks) return BITLANE_LATE;
  return result;
}

/* Whether the core is as CLEAR leaves it. */
static int is_clear(struct bitlane *device) {
  return !(get(device, BITLANE_REG_STATUS) & BITLANE_STATUS_BUSY_MASK) &&
         get(device, BITLANE_REG_FAULT) == 0 &&
         get(device, BITLANE_REG_DOORBELL) == 0 &&
         get(device, BITLANE_REG_RETIRED) == 0;
}

enum bitlane_result bitlane_clear(struct bitlane *device, uint32_t ticks) {
  const uint32_t start = BITLANE_NOW(device);
  set(device, BITLANE_REG_CLEAR, BITLANE_CLEAR_CLEAR_MASK);
  while (!is_clear(device))
    if ((uint32_t)(BITLANE_NOW(device) - start) > ticks) return BITLANE_LATE;
  device->submitted = device->retired = device->fault = device->fault_address = 0;
  return BITLANE_DONE;
}

void bitlane_interrupt(struct bitlane *device, int enable) {
  set(device, BITLANE_REG_INTERRUPT, enable ? BITLANE_INTERRUPT_ENABLE_MASK : 0);
}

int bitlane_acknowledge(struct bitlane *device) {
  const uint32_t word = get(device, BITLANE_REG_INTERRUPT);
  /* PENDING is written as it was read: one that comes in between is not lost. */
  set(device, BITLANE_REG_INTERRUPT, word);
  return BITLANE_GET(word, BITLANE_INTERRUPT_PENDING) != 0;
}
