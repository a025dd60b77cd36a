// Verilator's model of a circuit behind the driver in ported.h. Included by the generated part,
// which comes after "Vtop.h" and then defines `Ports`: the words of every port, and their traffic.

#include "verilated.h"
#include "messages.h"
#include "storage.h"
#include "ported.h"

namespace verilated {

template <class T> void put(T &to, const uint64_t *from) { to = T(from[0]); }
template <size_t N> void put(VlWide<N> &to, const uint64_t *from) {
  for (size_t i = 0; i < N; i++) to[i] = uint32_t(from[i / 2] >> 32 * (i % 2));
}
template <class T> void take(uint64_t *to, const T &from) { to[0] = from; }
template <size_t N> void take(uint64_t *to, const VlWide<N> &from) {
  for (size_t i = 0; i < N; i += 2)
    to[i / 2] = from[i] | (i + 1 < N ? uint64_t(from[i + 1]) << 32 : 0);
}

struct Model {
  VerilatedContext context;
  Vtop top{&context};
  ~Model() { top.final(); }
};

// `Ports` has `Top`, which is a `Model` with the words of all ports; the tables of ported.h; `put`,
// which copies inputs to the model; `take`, which copies all outputs; `sample`, which copies the
// outputs that an edge needs; and `serve`, which accesses the storage.
template <class Ports> struct Circuit : Ports {
  using Top = typename Ports::Top;

  static void low(Top &top) {
    Ports::put(top);
    top.top.clk = 0;
    top.top.eval();
  }

  static void settle(Top &top) {
    low(top);
    Ports::take(top);
  }

  static size_t edge(Top &top, const driver::Buffer *buffers, driver::ModelMessages &) {
    low(top);
    Ports::sample(top);
    top.top.clk = 1;
    top.top.eval();
    return Ports::serve(top, buffers);
  }

  // Verilator's model has its contents in its code.
  static void *memory(Top &, size_t) { return nullptr; }

  // Waveforms are not supported.
  static void clock(Top &, bool) {}
  static uint64_t *shown(Top &) { return nullptr; }
};

} // namespace verilated
