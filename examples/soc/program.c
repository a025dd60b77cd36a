/* XORs two buffers on the core, waits for it, and compares with what the processor computes.
 *
 * LED 0 lights if all is right, LED 1 if not. There is no cache, so no barrier is needed.
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

static int is_right(void) {
  struct bitlane core;
  struct bitlane_command command;
  uint32_t i;

  for (i = 0; i < SIZE; i++) {
    a[i] = (uint8_t)(7 * i + 1);
    b[i] = (uint8_t)(13 * i + 5);
  }
  if (bitlane_open(&core, WINDOW) != BITLANE_DONE) return 0;
  bitlane_dense(&command, BITLANE_OP_XOR, SIZE);
  bitlane_place(&command, (uint32_t)y, (uint32_t)a, (uint32_t)b);
  if (bitlane_submit(&core, &command) != BITLANE_DONE) return 0;
  if (bitlane_wait(&core, 1000) != BITLANE_DONE) return 0;
  for (i = 0; i < SIZE; i++)
    if (y[i] != (a[i] ^ b[i])) return 0;
  return 1;
}

void main(void) {
  *leds = is_right() ? 1 : 2;
  for (;;) {
  }
}
