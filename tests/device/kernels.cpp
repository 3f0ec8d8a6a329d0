#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <ATen/native/DispatchStub.h>
#include <ATen/native/transformers/attention.h>
#include <ATen/native/transformers/sdp_utils_cpp.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include <array>
#include <optional>
#include <tuple>
#include <vector>

#include "tests/device/copies.h"
#include "tests/device/fallback.h"
#include "tests/device/graph.h"
#include "tests/device/state.h"
#include "tests/device/streams.h"

// Operators that the boxed fallback cannot run: those that allocate, make views, copy, or that libtorch
// decomposes for devices without a kernel of their own.
namespace tutti::test_device {

namespace {

using OptionalTensor = std::optional<at::Tensor>;
using Sizes = c10::IntArrayRef;

constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);

at::Tensor empty(Sizes sizes, std::optional<c10::ScalarType> dtype, std::optional<c10::Layout>,
                 std::optional<c10::Device> on, std::optional<bool>,
                 std::optional<c10::MemoryFormat> format) {
  const c10::DeviceGuard guard(c10::device_or_default(on));
  return at::detail::empty_generic(sizes, &device_allocator(), kKeys, c10::dtype_or_default(dtype), format);
}

at::Tensor empty_strided(Sizes sizes, Sizes strides, std::optional<c10::ScalarType> dtype,
                         std::optional<c10::Layout>, std::optional<c10::Device> on, std::optional<bool>) {
  const c10::DeviceGuard guard(c10::device_or_default(on));
  return at::detail::empty_strided_generic(sizes, strides, &device_allocator(), kKeys,
                                           c10::dtype_or_default(dtype));
}

at::Tensor as_strided(const at::Tensor& self, Sizes sizes, Sizes strides, std::optional<int64_t> offset) {
  return at::native::as_strided_tensorimpl(self, sizes, strides, offset);
}

at::Tensor& set_storage_at(at::Tensor& self, at::Storage storage, int64_t offset, Sizes sizes,
                           Sizes strides) {
  auto* const impl = self.unsafeGetTensorImpl();
  impl->set_storage_keep_dtype(std::move(storage));
  impl->set_storage_offset(offset);
  if (strides.empty() && !sizes.empty())
    impl->set_sizes_contiguous(sizes);
  else
    impl->set_sizes_and_strides(sizes, strides);
  return self;
}

at::Tensor& set_storage(at::Tensor& self, at::Storage storage) {
  const auto count = static_cast<int64_t>(storage.nbytes() / self.element_size());
  return set_storage_at(self, std::move(storage), 0, {count}, {1});
}

at::Tensor& set_tensor(at::Tensor& self, const at::Tensor& source) {
  return set_storage_at(self, source.storage(), source.storage_offset(), source.sizes(), source.strides());
}

at::Tensor& set_nothing(at::Tensor& self) {
  const c10::Storage none(c10::Storage::use_byte_size_t(), 0, device_memory(nullptr, self.device().index()),
                          &device_allocator(), /*resizable=*/true);
  return set_storage_at(self, none, 0, {0}, {1});
}

const at::Tensor& resize(const at::Tensor& self, Sizes sizes, std::optional<c10::MemoryFormat> format) {
  auto* const impl = self.unsafeGetTensorImpl();
  if (impl->sizes() == sizes) return self;
  impl->set_sizes_contiguous(sizes);
  const int64_t count = impl->numel() == 0 ? 0 : impl->storage_offset() + impl->numel();
  const std::size_t bytes = static_cast<std::size_t>(count) * self.element_size();
  if (bytes > self.storage().nbytes())
    at::detail::getPrivateUse1Hooks().resizePrivateUse1Bytes(self.storage(), bytes);
  if (format && *format != c10::MemoryFormat::Preserve) impl->empty_tensor_restride(*format);
  return self;
}

void record_stream(at::Tensor& self, c10::Stream stream) {
  device_allocator().recordStream(self.storage().data_ptr(), stream);
}

at::Scalar local_scalar(const at::Tensor& self) {
  static constexpr const char* kName = "aten::_local_scalar_dense";
  refuse_within_graph(kName);
  at::Scalar value;
  run_kernel(kName, {self}, [&value](const std::vector<at::Tensor>& reads) -> std::vector<at::Tensor> {
    value = at::_local_scalar_dense(reads[0]);
    return {};
  });
  Lock lock(state().mutex);
  host_wait(lock, state().order.mark(current_stream(self.device().index())), kName);
  return value;
}

OptionalTensor given(const at::Tensor& tensor) {
  return tensor.defined() ? OptionalTensor(tensor) : std::nullopt;
}

at::Tensor convolution(const at::Tensor& input, const at::Tensor& weight, const OptionalTensor& bias,
                       Sizes stride, Sizes padding, Sizes dilation, bool transposed, Sizes output_padding,
                       int64_t groups) {
  const auto work = [=, stride = stride.vec(), padding = padding.vec(), dilation = dilation.vec(),
                     output_padding = output_padding.vec()](const std::vector<at::Tensor>& reads) {
    return std::vector{at::convolution(reads[0], reads[1], given(reads[2]), stride, padding, dilation,
                                       transposed, output_padding, groups)};
  };
  return run_kernel("aten::convolution", {input, weight, bias.value_or(at::Tensor())}, work)[0];
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> convolution_backward(
    const at::Tensor& gradient, const at::Tensor& input, const at::Tensor& weight, Sizes stride,
    Sizes padding, Sizes dilation, bool transposed, Sizes output_padding, int64_t groups,
    std::array<bool, 3> wanted) {
  const std::vector<int64_t> of_bias{transposed ? weight.size(1) * groups : weight.size(0)};
  const auto work = [=, stride = stride.vec(), padding = padding.vec(), dilation = dilation.vec(),
                     output_padding = output_padding.vec()](const std::vector<at::Tensor>& reads) {
    const auto bias_sizes =
        wanted[2] ? at::OptionalIntArrayRef(of_bias) : at::OptionalIntArrayRef(std::nullopt);
    const auto [of_input, of_weight, of_biases] =
        at::convolution_backward(reads[0], reads[1], reads[2], bias_sizes, stride, padding, dilation,
                                 transposed, output_padding, groups, wanted);
    return std::vector{of_input, of_weight, of_biases};
  };
  const auto results = run_kernel("aten::convolution_backward", {gradient, input, weight}, work);
  return {results[0], results[1], results[2]};
}

// The CPU's choice for such tensors; it reads none.
int64_t sdp_choice(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                   const OptionalTensor& mask, double dropout, bool causal, std::optional<double> scale,
                   bool grouped) {
  Aliases aliases;
  const OptionalTensor m = mask && mask->defined() ? OptionalTensor(aliases.of(*mask)) : std::nullopt;
  return at::_fused_sdp_choice(aliases.of(query), aliases.of(key), aliases.of(value), m, dropout, causal,
                               scale, grouped);
}

}  // namespace

}  // namespace tutti::test_device

namespace at::native {
namespace {
const auto sdp_choice_of_the_test_device = &tutti::test_device::sdp_choice;
}
REGISTER_PRIVATEUSE1_DISPATCH(_fused_sdp_choice_stub, sdp_choice_of_the_test_device)
}  // namespace at::native

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&tutti::test_device::fallback>());
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  using namespace tutti::test_device;
  m.impl("empty.memory_format", empty);
  m.impl("empty_strided", empty_strided);
  m.impl("as_strided", as_strided);
  m.impl("view", at::native::view);
  m.impl("_reshape_alias", at::native::_reshape_alias);
  m.impl("unfold", at::native::unfold);
  m.impl("set_", set_nothing);
  m.impl("set_.source_Storage", set_storage);
  m.impl("set_.source_Storage_storage_offset", set_storage_at);
  m.impl("set_.source_Tensor", set_tensor);
  m.impl("resize_", resize);
  m.impl("record_stream", record_stream);
  m.impl("_copy_from", copy_from);
  m.impl("_local_scalar_dense", local_scalar);
  m.impl("convolution_overrideable", convolution);
  m.impl("convolution_backward_overrideable", convolution_backward);
  for (const char* name : {"native_layer_norm", "native_group_norm"})
    m.impl(name, torch::CppFunction::makeFromBoxedFunction<&fallback>());
}
