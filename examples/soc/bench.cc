// Clocks the system until an LED lights; prints which one, and after how many cycles.

#include "Vsoc.h"
#include <cstdio>

int main() {
  VerilatedContext context;
  Vsoc soc{&context};
  unsigned cycle = 0;
  while (!soc.leds && cycle < 200000) {
    soc.reset = cycle < 10;
    soc.clock = 0;
    soc.eval();
    soc.clock = 1;
    soc.eval();
    cycle++;
  }
  std::printf("LEDs %d after %u cycles\n", soc.leds, cycle);
  return soc.leds != 1;
}
