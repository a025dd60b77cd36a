// Clocks a CXXRTL model until an event, and serves its storage. Knows nothing of the circuit:
// the generated file that includes this one describes it in `struct Circuit`:
//   using Top                                     the model
//   static constexpr bool single_pass           whether one eval() settles everything; it then always
//                                               sees a rising edge, else it looks at the clock
//   static constexpr size_t buffers             how many storage buffers there are
//   static Chunk *port(Top &, size_t)           a port's value, least significant chunk first
//   static size_t width(size_t)                 its bits
//   static void clock(Top &, bool, bool)        the clock's level before, and now
//   static void commit(Top &), rollback(Top &)  make registers take their next values, or keep theirs
//   static size_t serve(Top &, const Buffer *)  serve the storage; 0, or a faulty port's number + 1

#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <string>

#ifdef DRIVER_WAVEFORM
#include <cxxrtl/cxxrtl_vcd.h>
#include <fstream>
#endif

#if defined(_WIN32)
#define EXPORT extern "C" __declspec(dllexport)
#else
#define EXPORT extern "C" __attribute__((visibility("default")))
#endif

namespace driver {

struct Buffer {
  uint8_t *bytes;
  uint64_t size;
};

// Values are arrays of these.
using Chunk = cxxrtl::chunk_t;
constexpr size_t chunk_bits = 8 * sizeof(Chunk);

template <size_t Bits> inline Chunk *chunks(cxxrtl::value<Bits> &port) { return port.data; }
template <size_t Bits> inline Chunk *chunks(cxxrtl::wire<Bits> &port) { return port.curr.data; }

// The lowest 64 bits of a value of `bits`.
inline uint64_t number(const Chunk *data, size_t bits) {
  uint64_t low = data[0];
  return bits > chunk_bits && chunk_bits < 64 ? low | uint64_t(data[1]) << chunk_bits % 64 : low;
}

// Bytes: of a word of the storage.
template <size_t Bytes, size_t AddressBits>
inline bool read(const Buffer &buffer, Chunk enable, const Chunk *address, Chunk *data) {
  if (!enable) return true;
  uint64_t word = number(address, AddressBits);
  if (word >= buffer.size / Bytes) return false;
  std::memcpy(data, buffer.bytes + word * Bytes, Bytes);
  return true;
}

template <size_t Bytes, size_t AddressBits>
inline bool write(const Buffer &buffer, Chunk enable, const Chunk *address, const Chunk *data,
                  const Chunk *mask) {
  if (!enable) return true;
  uint64_t word = number(address, AddressBits);
  if (word >= buffer.size / Bytes) return false;
  uint8_t *to = buffer.bytes + word * Bytes;
  const uint8_t *from = reinterpret_cast<const uint8_t *>(data);
  bool all = true;
  for (size_t i = 0; i < Bytes; i += chunk_bits)
    all &= mask[i / chunk_bits] ==
           (Bytes - i >= chunk_bits ? ~Chunk(0) : (Chunk(1) << (Bytes - i) % chunk_bits) - 1);
  if (all) {
    std::memcpy(to, from, Bytes);
  } else {
    for (size_t i = 0; i < Bytes; i++)
      if (mask[i / chunk_bits] >> i % chunk_bits & 1) to[i] = from[i];
  }
  return true;
}

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

#ifdef DRIVER_WAVEFORM
class Waveform {
public:
  void open(const char *path, cxxrtl::module &top) {
    file.open(path, std::ios::binary);
    cxxrtl::debug_items items;
    top.debug_info(&items, nullptr, "");
    writer.timescale(1, "ns");
    writer.add_without_memories(items);
  }

  void sample(uint64_t time) {
    if (!file.is_open()) return;
    writer.sample(time);
    file.write(writer.buffer.data(), std::streamsize(writer.buffer.size()));
    writer.buffer.clear();
  }

  bool close() {
    file.close();
    return bool(file);
  }

private:
  cxxrtl::vcd_writer writer;
  std::ofstream file;
};
#endif

enum Code : uint32_t { SET, GET, STEP, UNTIL };

struct Instruction {
  uint32_t code;
  uint32_t port;
  uint64_t word;  // SET and GET: which 64 bits of the port
  uint64_t value; // SET: the value; STEP, UNTIL: the most cycles
};

template <class Circuit> class Model {
public:
  Model() { new (memory) typename Circuit::Top(); }
  ~Model() { std::destroy_at(&top()); }
  Model(const Model &) = delete;

  typename Circuit::Top &top() { return *reinterpret_cast<typename Circuit::Top *>(memory); }

  // In place, so that the pointers to ports stay good.
  void reset() {
    std::destroy_at(&top());
    std::memset(memory, 0, sizeof memory);
    new (memory) typename Circuit::Top();
    cycles = 0;
    storage_fault = 0;
    checks.failure.clear();
  }

  // Between two edges: carries inputs through to outputs.
  void settle() {
    Silence silence;
    if (Circuit::single_pass) {
      top().eval(&silence);
      Circuit::rollback(top());
    } else {
      Circuit::clock(top(), false, false);
      while (!top().eval(&silence) && top().commit()) {}
    }
  }

  // A clock edge. The ports show the values before it until commit(): the storage takes its
  // addresses from them, and `condition` is read there. With combinational feedback the inputs
  // must settle first; else one eval() does both. Returns false when a rule was broken.
  bool edge(const Chunk *condition, size_t length, bool &high) {
    if (!Circuit::single_pass) {
      settle();
      Circuit::clock(top(), false, true);
    }
    top().eval(&checks);
    for (size_t i = 0; i < length; i++) high |= condition[i] != 0;
    storage_fault = Circuit::serve(top(), buffers);
    Circuit::commit(top());
    cycles++;
#ifdef DRIVER_WAVEFORM
    settle();
    Circuit::clock(top(), true, true);
    waveform.sample(1000 * cycles - 500);
    Circuit::clock(top(), false, false);
    waveform.sample(1000 * cycles);
#endif
    return !storage_fault && checks.failure.empty();
  }

  bool step(uint64_t count) {
    bool high = false;
    while (count--)
      if (!edge(nullptr, 0, high)) return false;
    return true;
  }

  bool run_until(size_t port, uint64_t limit, bool &high) {
    const Chunk *condition = Circuit::port(top(), port);
    const size_t length = (Circuit::width(port) + chunk_bits - 1) / chunk_bits;
    while (limit-- && !high)
      if (!edge(condition, length, high)) return false;
    return true;
  }

  // Returns how many instructions were done; fewer than `count`: the next one failed.
  uint64_t run(const Instruction *program, uint64_t count, uint64_t *results) {
    bool stale = true;
    for (uint64_t i = 0; i < count; i++) {
      const Instruction &item = program[i];
      // A port's value has no more chunks than it needs: 64 bits may be one or two of them.
      Chunk *low = Circuit::port(top(), item.port) + item.word * 64 / chunk_bits;
      const size_t bits = Circuit::width(item.port) - 64 * item.word;
      bool high = false;
      switch (item.code) {
      case SET:
        low[0] = Chunk(item.value);
        if (bits > chunk_bits && chunk_bits < 64) low[1] = Chunk(item.value >> chunk_bits % 64);
        break;
      case GET:
        if (stale) settle();
        *results++ = number(low, bits);
        break;
      case STEP:
        if (!step(item.value)) return i;
        break;
      case UNTIL:
        if (!run_until(item.port, item.value, high) || !high) return i;
        break;
      }
      stale = item.code != GET;
    }
    return count;
  }

  Buffer buffers[Circuit::buffers + 1] = {};
  uint64_t cycles = 0;
  size_t storage_fault = 0;
  Checks checks;
#ifdef DRIVER_WAVEFORM
  Waveform waveform;
#endif

private:
  alignas(typename Circuit::Top) unsigned char memory[sizeof(typename Circuit::Top)] = {};
};

} // namespace driver

// The C interface, for the one circuit of this library.
#define DRIVER_INTERFACE(Circuit)                                                                  \
  using Model = driver::Model<Circuit>;                                                            \
  EXPORT void *model_create() { return new Model(); }                                              \
  EXPORT void model_destroy(void *model) { delete static_cast<Model *>(model); }                   \
  EXPORT void model_reset(void *model) { static_cast<Model *>(model)->reset(); }                   \
  EXPORT size_t model_chunk_bits() { return driver::chunk_bits; }                                  \
  EXPORT driver::Chunk *model_port(void *model, size_t port) {                                     \
    return Circuit::port(static_cast<Model *>(model)->top(), port);                                \
  }                                                                                                \
  EXPORT void model_buffer(void *model, size_t index, uint8_t *bytes, uint64_t size) {             \
    static_cast<Model *>(model)->buffers[index] = {bytes, size};                                   \
  }                                                                                                \
  EXPORT void model_settle(void *model) { static_cast<Model *>(model)->settle(); }                 \
  EXPORT int model_step(void *model, uint64_t count) {                                             \
    return static_cast<Model *>(model)->step(count);                                               \
  }                                                                                                \
  EXPORT int model_run_until(void *model, size_t port, uint64_t limit, int *came) {                \
    bool high = false;                                                                             \
    bool legal = static_cast<Model *>(model)->run_until(port, limit, high);                        \
    *came = high;                                                                                  \
    return legal;                                                                                  \
  }                                                                                                \
  EXPORT uint64_t model_run(void *model, const driver::Instruction *program, uint64_t count,       \
                            uint64_t *results) {                                                   \
    return static_cast<Model *>(model)->run(program, count, results);                              \
  }                                                                                                \
  EXPORT uint64_t model_cycles(void *model) { return static_cast<Model *>(model)->cycles; }        \
  EXPORT size_t model_storage_fault(void *model) {                                                 \
    return static_cast<Model *>(model)->storage_fault;                                             \
  }                                                                                                \
  EXPORT const char *model_failure(void *model) {                                                  \
    return static_cast<Model *>(model)->checks.failure.c_str();                                    \
  }

#ifdef DRIVER_WAVEFORM
#define DRIVER_WAVEFORM_INTERFACE                                                                  \
  EXPORT void model_waveform_open(void *model, const char *path) {                                 \
    Model *self = static_cast<Model *>(model);                                                     \
    self->waveform.open(path, self->top());                                                        \
    self->settle();                                                                                \
    self->waveform.sample(0);                                                                      \
  }                                                                                                \
  EXPORT int model_waveform_close(void *model) {                                                   \
    return static_cast<Model *>(model)->waveform.close();                                          \
  }
#else
#define DRIVER_WAVEFORM_INTERFACE
#endif
