/* XORs two buffers on the core, twice, and compares each result with what the processor computes.
 *
 * LED 0 lights if all is right, LED 1 if not. The processor's data cache writes through, so that
 * the core reads what was stored; but the cache does not see what the core writes.
 */

#include "bitlane.h"
#include "core.h"

#define SIZE 256u

/* WINDOW and LEDS come from the system's description, by way of the compiler's options. */
static volatile uint32_t *const leds = (volatile uint32_t *)LEDS;

/* In the core's memory; at odd addresses, which it does not mind. */
static uint8_t *const a = (uint8_t *)(CORE_MEMORY_BASE + 0x101u);
static uint8_t *const b = (uint8_t *)(CORE_MEMORY_BASE + 0x402u);
static uint8_t *const y = (uint8_t *)(CORE_MEMORY_BASE + 0x703u);

/* VexRiscv's own instruction: all lines of the data cache become invalid. */
static void invalidate_cache(void) { __asm__ volatile(".word 0x500f" ::: "memory"); }

static int is_right(uint32_t factor) {
  struct bitlane core;
  struct bitlane_command command;
  uint32_t i;

  for (i = 0; i < SIZE; i++) {
    a[i] = (uint8_t)(factor * i + 1);
    b[i] = (uint8_t)(13 * i + 5);
  }
  if (bitlane_open(&core, WINDOW) != BITLANE_DONE) return 0;
  bitlane_dense(&command, BITLANE_OP_XOR, SIZE);
  bitlane_place(&command, (uint32_t)y, (uint32_t)a, (uint32_t)b);
  if (bitlane_submit(&core, &command) != BITLANE_DONE) return 0;
  if (bitlane_wait(&core, 1000) != BITLANE_DONE) return 0;
  invalidate_cache();
  for (i = 0; i < SIZE; i++)
    if (y[i] != (a[i] ^ b[i])) return 0;
  return 1;
}

void main(void) {
  *leds = is_right(7) && is_right(9) ? 1 : 2;
  for (;;) {
  }
}
