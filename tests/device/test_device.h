#pragma once

#include <c10/core/Device.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/device/clock.h"

// The test device: an accelerator for machines without a GPU, four of them in a process, known to libtorch as
// "test:0" to "test:3" (PrivateUse1). Its kernels are libtorch's CPU kernels, so that results have the CPU's
// bits. It is stricter than a GPU.
//
// Memory: the host cannot touch it. Tensors' addresses are closed pages (a read dies, a system call fails
// with EFAULT); kernels use a second mapping of the same memory. As on CUDA, host tensors with dimensions
// among an operator's arguments are errors, and so are host scalars of fused kernels, generators of the CPU,
// and tensors of two devices. Pinned memory is closed to the host while an asynchronous copy to it is under
// way, and to writes during one from it.
//
// Order: vector clocks of streams, events and host threads find a missing wait at any timing. Each kernel
// notes the bytes that it reads and writes; a conflict with an earlier kernel that is not ordered before it
// is a finding. Freed blocks keep their history, so that a block freed or reused too early is found. Of a
// tensor with gaps, the bytes between its first and last element count.
//
// Threads: each host thread has a clock, of what it has waited for itself or has learned by
// join_this_thread(). A new thread's clock is empty. Backward must run on the caller's thread, since
// libtorch's own threads pass on no clock:
// c10::AutogradState::get_tls_state().set_multithreading_enabled(false). Pages of pinned memory open for all
// threads once one has waited.
//
// Time: in late mode kernels run when something that is ordered after them is waited for, so that a missing
// wait gives wrong numbers, too. Kernels whose outputs are not known at their launch, and those that draw
// random numbers, run at once, with all that is ordered before them. An error of a late kernel is thrown by a
// later wait.
//
// A program opens the library by collectives/device_entry.h. Options of tutti_device_start are a list,
// separated by commas, of "late" (late mode), "report": each finding goes to stderr at once, a summary when
// the process exits, and "leave_out=PLACE" (wait_places.h). A host access to device memory is named on stderr
// before the process dies of it. Later calls only set the mode.
//
// All functions may be called from any thread; set_autocast() only while no other thread runs operators.
namespace tutti::test_device {

enum class Mode { kEager, kLate };

// Maps the memory and registers the test device with libtorch, once in a process.
void install();
void set_mode(Mode mode);

c10::Device device(int index = 0);

// -- Findings and counts, of all devices.

// Unordered conflicts since the last call, a line each: "aten::add.out on stream 2 of device 0 reads what
// aten::fill_ on stream 1 of device 0 writes, without waiting for it".
std::vector<std::string> take_findings();

struct Counters {
  int64_t kernels = 0;
  int64_t late_kernels = 0;  // those that did not run at their launch
  int64_t copies_to_device = 0;
  int64_t copies_to_host = 0;
  int64_t host_waits = 0;
  int64_t graphs = 0;  // launched
};
Counters counters();
std::map<std::string, int64_t> kernels_seen();  // by name
// By cause: "event", "stream", "device", "emptyCache", "copy to host", "copy to device", or the operator that
// needs a number. A wait for what the thread knows to be over is none.
std::map<std::string, int64_t> host_waits();
// Those of them after which the waiting thread's stream has nothing left to do: a GPU would idle until the
// host has launched more.
std::map<std::string, int64_t> stalls();
void reset_counters();

// Which block has this address, and which kernel used the block last; "" if the address is the host's own.
std::string where(const void* address);

// -- Memory. Device memory is c10's DeviceAllocator, with statistics; bytes are those asked for.

int64_t used_bytes(int device);
int64_t peak_bytes(int device);
void reset_peak(int device);
void set_budget(int device, int64_t bytes);  // of used bytes; 0 = none. Beyond it: c10::OutOfMemoryError
void fail_at(int device, int64_t ordinal);   // the n-th allocation from now fails; 0 = none
// Calls `before` on the allocating thread before each allocation; it may throw. Null: no more.
using MemoryWatch = void (*)(int device, std::size_t bytes);
void watch_memory(MemoryWatch before);
int64_t allocations(int device);  // asked for so far
int64_t empty_cache_calls();

// The file behind all devices' memory, which another process may map, and the place of an address in it.
int memory_file();
int64_t memory_file_bytes();
int64_t offset_in_memory_file(const void* address);

// -- Order.

using HostClock = Clock;
HostClock clock_of_this_thread();
// The calling thread knows what `clock` knows, by a message from the thread that `clock` is of.
void join_this_thread(const HostClock& clock);

// An event that the host does not know to be over is ready at the query after `queries` others.
void set_event_latency(int queries);

// Runs `work` as a kernel on the current stream of the current device. `ranges`: addresses of device memory,
// or of pinned memory, that it uses. `work` reaches them by shadow() and runs on any thread; it may wait for
// kernels of other streams that another thread runs.
struct Range {
  const void* data;
  int64_t bytes;
  bool write;
};
void launch(const char* name, const std::vector<Range>& ranges, std::function<void()> work);
void* shadow(const void* address);

// -- Communicators (communicator.h).

// The calls of ranks of this process since the last call of this, by rank, in their order over all
// communicators: "communicator 1: all_gather of 128 Float".
std::map<int, std::vector<std::string>> take_communicator_calls();

// -- Autocast: which operators run in 16 bits. The CPU's lists give the CPU's bits; CUDA's differ from those.
enum class AutocastPolicy { kCpu, kCuda };
void set_autocast(AutocastPolicy policy);

}  // namespace tutti::test_device
