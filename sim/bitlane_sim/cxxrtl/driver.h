// Clocks a model until an event. Knows neither the circuit nor who wrote the model: the file that
// includes this one says all that in `struct Circuit`:
//   using Top, Chunk, Checks     the model; what values are arrays of; what hears of failed checks:
//                                it has a `std::string failure`, empty while none has failed
//   static constexpr size_t buffers              how many storage buffers there are
//   static Chunk *port(Top &, size_t)            a port's value, least significant chunk first
//   static size_t width(size_t)                  its bits
//   static bool kept(size_t)                     whether a port shows after an edge what it was
//                                                before; others do between settle() and the edge
//   static void settle(Top &)                    lets outputs follow from state and inputs
//   static size_t edge(Top &, const driver::Buffer *, Checks &)
//                                                a rising edge, with the storage served; 0, or the
//                                                number of the storage port at fault, from 1
// With DRIVER_WAVEFORM it has `Waveform` too: open(path, top), sample(top, time), close().

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <string>

#if defined(_WIN32)
#define EXPORT extern "C" __declspec(dllexport)
#else
#define EXPORT extern "C" __attribute__((visibility("default")))
#endif

namespace driver {

enum Code : uint32_t { SET, GET, STEP, UNTIL };

struct Instruction {
  uint32_t code;
  uint32_t port;
  uint64_t word;  // SET and GET: which 64 bits of the port
  uint64_t value; // SET: the value; STEP, UNTIL: the most cycles
};

template <class Circuit> class Model {
public:
  using Chunk = typename Circuit::Chunk;
  static constexpr size_t chunk_bits = 8 * sizeof(Chunk);

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

  void settle() { Circuit::settle(top()); }

  // Returns false when a rule was broken.
  bool edge() {
    storage_fault = Circuit::edge(top(), buffers, checks);
    cycles++;
#ifdef DRIVER_WAVEFORM
    waveform.sample(top(), cycles);
#endif
    return !storage_fault && checks.failure.empty();
  }

  bool step(uint64_t count) {
    while (count--)
      if (!edge()) return false;
    return true;
  }

  bool run_until(size_t port, uint64_t limit, bool &high) {
    const Chunk *condition = Circuit::port(top(), port);
    const size_t length = (Circuit::width(port) + chunk_bits - 1) / chunk_bits;
    if (Circuit::kept(port)) {
      while (limit-- && !high) {
        const bool legal = edge();
        high = *condition != 0;
        if (!legal) return false;
      }
      return true;
    }
    while (limit-- && !high) {
      settle();
      for (size_t i = 0; i < length; i++) high |= condition[i] != 0;
      if (!edge()) return false;
    }
    return true;
  }

  // Returns how many instructions were done; fewer than `count`: the next one failed.
  uint64_t run(const Instruction *program, uint64_t count, uint64_t *results) {
    bool stale = true;
    for (uint64_t i = 0; i < count; i++) {
      const Instruction &item = program[i];
      // A port's value has no more chunks than it needs: 64 bits may be one or two of them.
      Chunk *low = Circuit::port(top(), item.port) + item.word * 64 / chunk_bits;
      const bool two = Circuit::width(item.port) - 64 * item.word > chunk_bits && chunk_bits < 64;
      bool high = false;
      switch (item.code) {
      case SET:
        low[0] = Chunk(item.value);
        if (two) low[1] = Chunk(item.value >> chunk_bits % 64);
        break;
      case GET:
        if (stale) settle();
        *results++ = two ? low[0] | uint64_t(low[1]) << chunk_bits % 64 : low[0];
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
  typename Circuit::Checks checks;
#ifdef DRIVER_WAVEFORM
  typename Circuit::Waveform waveform;
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
  EXPORT size_t model_chunk_bits() { return Model::chunk_bits; }                                   \
  EXPORT void *model_port(void *model, size_t port) {                                              \
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
  }                                                                                                \
  EXPORT int model_waveform_close(void *model) {                                                   \
    return static_cast<Model *>(model)->waveform.close();                                          \
  }
#else
#define DRIVER_WAVEFORM_INTERFACE
#endif
