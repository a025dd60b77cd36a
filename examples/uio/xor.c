/* A XOR by a core under Linux: UIO maps the control window and a reserved buffer.
 *
 *     cc -o xor xor.c bitlane.c    # beside the files of bitlane export --folder
 *
 * Map 0 of the device is the control window, map 1 the buffer: see bitlane.dtsi. Both are mapped
 * without a cache, as device memory, so the program accesses the buffer by volatile bytes.
 *
 * SPDX-License-Identifier: MIT
 */

#define _POSIX_C_SOURCE 200809L

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bitlane.h"

enum { SIZE = 512, WAITS = 1000, MILLISECONDS = 10 };

/* The number in the file `name` of a map of the device, or 0. */
static unsigned long attribute(const char *maps, const char *name) {
  char path[256];
  unsigned long value = 0;
  FILE *file;
  snprintf(path, sizeof path, "%s/%s", maps, name);
  if (!(file = fopen(path, "r"))) return 0;
  if (fscanf(file, "%lx", &value) != 1) value = 0;
  fclose(file);
  return value;
}

/* Wait for an interrupt, or MILLISECONDS; let the kernel pass the next one on. */
static void wait_for_interrupt(struct bitlane *core, int file) {
  const uint32_t enable = 1;
  uint32_t count;
  struct pollfd waiting = {file, POLLIN, 0};
  if (poll(&waiting, 1, MILLISECONDS) == 1 && read(file, &count, sizeof count) < 0) return;
  bitlane_acknowledge(core);
  if (write(file, &enable, sizeof enable) < 0) return;
}

/* Submit Y = A ^ B of SIZE bytes each, at `address` and behind it; wait until it has retired. */
static enum bitlane_result run(struct bitlane *core, int file, uint32_t address) {
  struct bitlane_command command;
  enum bitlane_result result;
  int waits;
  bitlane_dense(&command, BITLANE_OP_XOR, SIZE);
  bitlane_place(&command, address + 2 * SIZE, address, address + SIZE);
  bitlane_interrupt(core, 1);
  if ((result = bitlane_submit(core, &command)) != BITLANE_DONE) return result;
  for (waits = 0; (result = bitlane_look(core)) == BITLANE_BUSY; waits++) {
    if (waits == WAITS) return BITLANE_LATE;
    wait_for_interrupt(core, file);
  }
  return result;
}

/* Run a XOR on the UIO `device` with the attributes in `maps`; 0 if its result is right. */
int xor_by_uio(const char *device, const char *maps) {
  const long page = sysconf(_SC_PAGESIZE);
  const unsigned long address = attribute(maps, "map1/addr");
  struct bitlane core;
  enum bitlane_result result;
  volatile uint8_t *buffer;
  void *window, *data;
  int file, i;

  if (!address || attribute(maps, "map1/size") < 3 * SIZE || (file = open(device, O_RDWR)) < 0) {
    fprintf(stderr, "%s: no UIO device with a buffer of %d bytes in map1\n", device, 3 * SIZE);
    return 1;
  }
  window = mmap(0, BITLANE_CONTROL_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  data = mmap(0, 3 * SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, file, page);
  if (window == MAP_FAILED || data == MAP_FAILED) return perror(device), 1;
  buffer = data;
  if (bitlane_open(&core, (uintptr_t)window) != BITLANE_DONE ||
      bitlane_clear(&core, 1000000) != BITLANE_DONE) {
    fprintf(stderr, "%s: no core of this version answers in map0\n", device);
    return 1;
  }
  for (i = 0; i < SIZE; i++) buffer[i] = (uint8_t)i, buffer[SIZE + i] = (uint8_t)(3 * i);
  if ((result = run(&core, file, (uint32_t)address)) != BITLANE_DONE) {
    fprintf(stderr, "%s: result %d, FAULT %#x at %#x\n", device, result, (unsigned)core.fault,
            (unsigned)core.fault_address);
    return 1;
  }
  for (i = 0; i < SIZE; i++)
    if (buffer[2 * SIZE + i] != (uint8_t)(i ^ 3 * i)) {
      fprintf(stderr, "%s: byte %d is wrong\n", device, i);
      return 1;
    }
  printf("%d bytes are right\n", SIZE);
  return 0;
}

int main(void) { return xor_by_uio("/dev/uio0", "/sys/class/uio/uio0/maps"); }
