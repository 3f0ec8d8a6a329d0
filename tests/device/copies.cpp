#include "tests/device/copies.h"

#include <ATen/ops/from_blob.h>

#include <memory>

#include "tests/device/aliases.h"
#include "tests/device/graph.h"
#include "tests/device/state.h"
#include "tests/device/streams.h"

namespace tutti::test_device {

namespace {

bool is_pinned(const at::Tensor& host) { return state().memory.pinned_arena.in_front(host.const_data_ptr()); }

// Over the pages of pinned memory that stay open.
at::Tensor pinned_alias(const at::Tensor& host) {
  char* const data = state().memory.pinned_arena.to_shadow(host.const_data_ptr());
  return at::from_blob(data, host.sizes(), host.strides(), host.options());
}

// A late copy reads what the host's memory holds at the launch.
at::Tensor as_it_is_now(const at::Tensor& host) {
  return state().order.mode == Mode::kLate ? host.clone() : host;
}

void note(const Kernel& kernel, const at::Tensor& tensor, bool write) {
  const Extent bytes = extent(tensor);
  state().memory.note(kernel, bytes.begin, bytes.end, write);
}

// `from` and `to`: CPU tensors, of device memory or the host's.
std::function<void()> copying(const at::Tensor& from, const at::Tensor& to) {
  return [from, to] { at::Tensor(to).copy_(from); };
}

// As CUDA: on the source's stream, which waits for the other device's stream, which waits for the copy.
void copy_on_devices(const at::Tensor& from, const at::Tensor& to) {
  State& s = state();
  Aliases aliases;
  if (Graph* const graph = recording()) {
    const auto copy = copying(aliases.of(from), aliases.of(to));
    graph->run("copy on device", {{extent(from), false}, {extent(to), true}}, aliases,
               [copy]() -> std::vector<at::Tensor> {
                 copy();
                 return {};
               });
    return;
  }
  const auto work = copying(aliases.of(from), aliases.of(to));
  const int stream = current_stream(from.device().index()), other = current_stream(to.device().index());
  Lock lock(s.mutex);
  if (stream != other) s.order.make_wait(stream, s.order.mark(other));
  const Kernel kernel = s.order.launch("copy on device", stream);
  note(kernel, from, false);
  note(kernel, to, true);
  s.order.submit(lock, kernel, work);
  if (stream != other) s.order.make_wait(other, s.order.mark(stream));
}

void copy_to_device(const at::Tensor& from, const at::Tensor& to, bool non_blocking) {
  refuse_within_graph("a copy from the host");
  State& s = state();
  Aliases aliases;
  const bool pinned = is_pinned(from);
  const auto work = copying(pinned ? pinned_alias(from) : as_it_is_now(from), aliases.of(to));
  const int stream = current_stream(to.device().index());
  Lock lock(s.mutex);
  const Kernel kernel = s.order.launch("copy to device", stream);
  ++s.order.counters.copies_to_device;
  if (pinned) note(kernel, from, false);
  note(kernel, to, true);
  if (pinned && non_blocking) s.memory.close_pinned(kernel, from.const_data_ptr(), /*to_reads=*/false);
  s.order.submit(lock, kernel, work);
  if (!non_blocking) host_wait(lock, s.order.mark(stream), "copy to device");
}

void copy_to_host(const at::Tensor& from, const at::Tensor& to, bool non_blocking) {
  refuse_within_graph("a copy to the host");
  State& s = state();
  Aliases aliases;
  const bool pinned = is_pinned(to);
  const auto work = copying(aliases.of(from), pinned ? pinned_alias(to) : to);
  const int stream = current_stream(from.device().index());
  Lock lock(s.mutex);
  const Kernel kernel = s.order.launch("copy to host", stream);
  ++s.order.counters.copies_to_host;
  note(kernel, from, false);
  if (pinned) note(kernel, to, true);
  if (pinned && non_blocking) s.memory.close_pinned(kernel, to.const_data_ptr(), /*to_reads=*/true);
  s.order.submit(lock, kernel, work);
  if (!pinned || !non_blocking) host_wait(lock, s.order.mark(stream), "copy to host");
}

}  // namespace

at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool non_blocking) {
  if (from.numel() == 0) return to;
  if (on_device(from) && on_device(to))
    copy_on_devices(from, to);
  else if (on_device(to))
    copy_to_device(from, to, non_blocking);
  else
    copy_to_host(from, to, non_blocking);
  return to;
}

}  // namespace tutti::test_device
