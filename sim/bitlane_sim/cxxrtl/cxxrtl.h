// What is the same for all models that CXXRTL wrote: checks, edges in as many passes as it takes,
// waveforms. The generated `Circuit` adds to it what is its own.

#include <string>

#ifdef DRIVER_WAVEFORM
#include <cxxrtl/cxxrtl_vcd.h>
#include <fstream>
#endif

namespace cxxrtl_driver {

// Remembers the first failed check of the circuit instead of ending the process.
struct Checks : cxxrtl::performer {
  std::string failure;

  void on_check(cxxrtl::flavor flavor, bool condition, const cxxrtl::lazy_fmt &formatter,
                const cxxrtl::metadata_map &) override {
    bool must_hold = flavor == cxxrtl::flavor::ASSERT || flavor == cxxrtl::flavor::ASSUME;
    if (!must_hold || condition || !failure.empty()) return;
    failure = formatter();
    if (failure.empty()) failure = "an assertion failed";
  }
};

// Ignores what happens while the circuit settles between two edges.
struct Silence : cxxrtl::performer {
  void on_print(const cxxrtl::lazy_fmt &, const cxxrtl::metadata_map &) override {}
  void on_check(cxxrtl::flavor, bool, const cxxrtl::lazy_fmt &,
                const cxxrtl::metadata_map &) override {}
};

struct Circuit {
  using Chunk = cxxrtl::chunk_t;
  using Checks = cxxrtl_driver::Checks;

  template <size_t Bits> static Chunk *chunks(cxxrtl::value<Bits> &port) { return port.data; }
  template <size_t Bits> static Chunk *chunks(cxxrtl::wire<Bits> &port) { return port.curr.data; }

  // Between two edges: carries inputs through to outputs.
  template <class Own> static void settled(typename Own::Top &top) {
    Silence silence;
    Own::clock(top, false, false);
    do top.eval(&silence); while (top.commit());
  }

  // An edge, up to where registers would take their next values: ports show those before it.
  template <class Own> static void evaluated(typename Own::Top &top, Checks &checks) {
    settled<Own>(top);
    Own::clock(top, false, true);
    top.eval(&checks);
  }
};

#ifdef DRIVER_WAVEFORM
template <class Own> class Waveform {
public:
  using Top = typename Own::Top;

  void open(const char *path, Top &top) {
    file.open(path, std::ios::binary);
    cxxrtl::debug_items items;
    top.debug_info(&items, nullptr, "");
    writer.timescale(1, "ns");
    writer.add_without_memories(items);
    Own::settle(top);
    write(0);
  }

  // After edge number `cycle`: the clock is high for half a cycle, then low.
  void sample(Top &top, uint64_t cycle) {
    Own::settle(top);
    if (!file.is_open()) return;
    Own::clock(top, true, true);
    write(1000 * cycle - 500);
    Own::clock(top, false, false);
    write(1000 * cycle);
  }

  bool close() {
    file.close();
    return bool(file);
  }

private:
  void write(uint64_t time) {
    writer.sample(time);
    file.write(writer.buffer.data(), std::streamsize(writer.buffer.size()));
    writer.buffer.clear();
  }

  cxxrtl::vcd_writer writer;
  std::ofstream file;
};
#endif

} // namespace cxxrtl_driver
