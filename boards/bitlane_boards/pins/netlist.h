// Tables of a netlist of LUTs, flip-flops and memories with one clock, and what changes in it.
//
// Signals are numbered; 0 is constantly low, 1 constantly high. LUTs come in an order in which
// each one follows those that it depends on.

#include <cstddef>
#include <cstdint>
#include <vector>

#define EXPORT extern "C" __attribute__((visibility("default")))

struct Lut {
  uint32_t inputs[4];
  uint32_t output;
  uint32_t table; // bit i: the output for inputs i, the first input least significant
};

// At an edge: `value` if `clear` is high, else `d` if `enable` is.
struct FlipFlop {
  uint32_t d, enable, clear, q;
  uint32_t value, first;
};

enum Kind { READ, WRITE, WRITE_TABLE };

// A port of a memory of single bits: data bit j is at its offset plus the weights of the address
// bits that are high. A read port gives what was there before the edge. WRITE_TABLE: the memory is
// the table of a LUT, whose number stands for the memory's.
struct Port {
  uint32_t memory, kind, enable;
  uint32_t address, address_bits; // range of `wires`: a signal and its weight each
  uint32_t data, data_bits;       // a signal and its offset each; of a write also its mask
};

struct Wire {
  uint32_t signal, place, mask;
};

struct Netlist {
  uint32_t signals, luts, flip_flops, ports, wires, memories;
  const Lut *lut;
  const FlipFlop *flip_flop;
  const Port *port;
  const Wire *wire;
  const uint8_t *contents; // one byte a bit, all memories after each other
  uint64_t content_bits;
  const uint64_t *bases; // where each memory begins in `contents`
};

// Times that LUTs in a loop are looked at before they are taken to oscillate.
const int ROUNDS = 64;

// A set of small numbers that is walked in their order, and may grow ahead while it is.
class Set {
public:
  void resize(size_t count) {
    words.assign(count / 64 + 1, 0);
    groups.assign(words.size() / 64 + 1, 0);
  }
  void add(uint32_t item) {
    words[item / 64] |= uint64_t(1) << item % 64;
    groups[item / 4096] |= uint64_t(1) << item / 64 % 64;
  }
  template <class Visit> void drain(Visit visit) {
    for (size_t group = 0; group < groups.size(); group++) {
      while (groups[group]) {
        size_t word = group * 64 + size_t(__builtin_ctzll(groups[group]));
        while (words[word]) {
          int bit = __builtin_ctzll(words[word]);
          words[word] &= words[word] - 1;
          visit(uint32_t(word * 64 + size_t(bit)));
        }
        groups[group] &= groups[group] - 1;
      }
    }
  }

private:
  std::vector<uint64_t> words, groups;
};

// A netlist with the users of each signal: LUTs, flip-flops and ports, numbered in this order. The
// dirty ones are those that have an input which has changed.
class Tables {
public:
  void drive(uint32_t signal) { inputs.push_back(signal); }

  uint64_t cycles = 0;
  bool restless = false; // a loop of LUTs has not come to rest

protected:
  explicit Tables(const Netlist &net)
      : luts(net.lut, net.lut + net.luts), flip_flops(net.flip_flop, net.flip_flop + net.flip_flops),
        ports(net.port, net.port + net.ports), wires(net.wire, net.wire + net.wires),
        bases(net.bases, net.bases + net.memories) {}

  // Lists the users of each signal, when the LUTs have their inputs; everything is dirty then.
  void connect(uint32_t signals) {
    std::vector<std::vector<uint32_t>> users(signals);
    auto use = [&](uint32_t signal, uint32_t user) {
      if (users[signal].empty() || users[signal].back() != user) users[signal].push_back(user);
    };
    for (uint32_t i = 0; i < luts.size(); i++)
      for (uint32_t input : luts[i].inputs) use(input, i);
    first_register = uint32_t(luts.size());
    for (uint32_t i = 0; i < flip_flops.size(); i++)
      for (uint32_t input : {flip_flops[i].d, flip_flops[i].enable, flip_flops[i].clear})
        use(input, first_register + i);
    first_port = first_register + uint32_t(flip_flops.size());
    for (uint32_t i = 0; i < ports.size(); i++) {
      const Port &port = ports[i];
      use(port.enable, first_port + i);
      for (uint32_t j = 0; j < port.address_bits; j++)
        use(wires[port.address + j].signal, first_port + i);
      for (uint32_t j = 0; port.kind != READ && j < port.data_bits; j++) {
        use(wires[port.data + j].signal, first_port + i);
        use(wires[port.data + j].mask, first_port + i);
      }
    }
    begin.push_back(0);
    for (const auto &list : users) {
      fanout.insert(fanout.end(), list.begin(), list.end());
      begin.push_back(uint32_t(fanout.size()));
    }
    dirty_luts.resize(luts.size());
    dirty_registers.resize(flip_flops.size());
    dirty_ports.resize(ports.size());
    for (uint32_t i = 0; i < luts.size(); i++) dirty_luts.add(i);
    for (uint32_t i = 0; i < flip_flops.size(); i++) dirty_registers.add(i);
    for (uint32_t i = 0; i < ports.size(); i++) dirty_ports.add(i);
  }

  // Marks the users of a signal that has changed.
  void wake(uint32_t signal) {
    for (uint32_t i = begin[signal]; i < begin[signal + 1]; i++) {
      uint32_t user = fanout[i];
      if (int64_t(user) <= here)
        again.push_back(user);
      else if (user < first_register)
        dirty_luts.add(user);
      else if (user < first_port)
        dirty_registers.add(user - first_register);
      else
        dirty_ports.add(user - first_port);
    }
  }

  std::vector<Lut> luts;
  std::vector<FlipFlop> flip_flops;
  std::vector<Port> ports;
  std::vector<Wire> wires;
  std::vector<uint64_t> bases;
  std::vector<uint32_t> inputs, begin, fanout;
  int64_t here = -1;           // the LUT at which `settle` is
  std::vector<uint32_t> again; // those before it that have to be looked at once more
  uint32_t first_register = 0, first_port = 0;
  Set dirty_luts, dirty_registers, dirty_ports;
};
