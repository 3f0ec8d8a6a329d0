#include "tests/device/aliases.h"

#include <c10/core/CPUAllocator.h>

#include <cstring>
#include <utility>

#include "tests/device/state.h"
#include "tests/device/streams.h"

namespace tutti::test_device {

namespace {

at::Tensor view_of(const c10::Storage& storage, const at::Tensor& like, c10::DispatchKey key) {
  at::Tensor view =
      at::detail::make_tensor<c10::TensorImpl>(c10::Storage(storage), c10::DispatchKeySet(key), like.dtype());
  auto* const impl = view.unsafeGetTensorImpl();
  impl->set_storage_offset(like.storage_offset());
  impl->set_sizes_and_strides(like.sizes(), like.strides());
  if (like.unsafeGetTensorImpl()->is_wrapped_number()) impl->set_wrapped_number(true);
  return view;
}

// Moves the memory of a kernel's result to the device. Memory that came from the host, since another thread
// allocated it, is copied.
c10::DataPtr adopt(c10::StorageImpl* storage, int device) {
  if (!storage->data()) return device_memory(nullptr, device);
  const Arena& arena = state().memory.device_arena;
  if (arena.in_shadow(storage->data())) {
    c10::DataPtr old = storage->set_data_ptr(c10::DataPtr());
    return device_memory(arena.to_front(old.release_context()), device);
  }
  c10::DataPtr fresh = c10::GetCPUAllocator()->allocate(storage->nbytes());
  std::memcpy(fresh.get(), storage->data(), storage->nbytes());
  return device_memory(arena.to_front(fresh.release_context()), device);
}

}  // namespace

bool on_device(const at::Tensor& tensor) { return tensor.defined() && tensor.device().type() == kType; }

Extent extent(const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.numel() == 0) return {};
  const auto size = static_cast<int64_t>(tensor.element_size());
  int64_t last = 0;
  for (int64_t d = 0; d < tensor.dim(); ++d) last += (tensor.size(d) - 1) * tensor.stride(d);
  const char* const begin =
      static_cast<const char*>(tensor.storage().data()) + tensor.storage_offset() * size;
  return {begin, begin + (last + 1) * size};
}

at::Tensor Aliases::of(const at::Tensor& tensor) {
  at::Tensor& alias = aliases_[tensor.unsafeGetTensorImpl()];
  if (alias.defined()) return alias;
  const c10::Storage& original = tensor.storage();
  c10::Storage& storage = alias_storages_[original.unsafeGetStorageImpl()];
  if (!storage) {
    const void* const front = original.data();
    const Arena& arena = state().memory.device_arena;
    TORCH_CHECK(!front || arena.in_front(front), "a tensor of a test device has memory of the host");
    void* const data = front ? arena.to_shadow(front) : nullptr;
    storage = c10::Storage(c10::Storage::use_byte_size_t(), original.nbytes(), c10::DataPtr(data, c10::kCPU),
                           c10::GetCPUAllocator(), /*resizable=*/true);
    original_storages_.emplace(storage.unsafeGetStorageImpl(), original);
  }
  alias = view_of(storage, tensor, c10::DispatchKey::CPU);
  originals_[alias.unsafeGetTensorImpl()] = tensor;
  return alias;
}

at::Tensor Aliases::back(const at::Tensor& result, int device) {
  if (!result.defined()) return result;
  const auto alias = originals_.find(result.unsafeGetTensorImpl());
  if (alias != originals_.end()) return alias->second;
  auto* const storage = result.storage().unsafeGetStorageImpl();
  const auto argument = original_storages_.find(storage);
  if (argument != original_storages_.end())
    return view_of(argument->second, result, c10::DispatchKey::PrivateUse1);
  c10::Storage& adopted = adopted_[storage];
  if (!adopted)
    adopted = c10::Storage(c10::Storage::use_byte_size_t(), storage->nbytes(), adopt(storage, device),
                           &device_allocator(), /*resizable=*/true);
  return view_of(adopted, result, c10::DispatchKey::PrivateUse1);
}

void Aliases::follow_resized(int device) {
  const Arena& arena = state().memory.device_arena;
  for (const auto& [alias, original] : original_storages_) {
    const void* const front = original.data();
    if (alias->data() == (front ? arena.to_shadow(front) : nullptr)) continue;
    const std::size_t bytes = alias->nbytes();
    original.unsafeGetStorageImpl()->set_data_ptr_noswap(adopt(alias, device));
    original.unsafeGetStorageImpl()->set_nbytes(bytes);
    alias->set_data_ptr_noswap(c10::DataPtr(arena.to_shadow(original.data()), c10::kCPU));
  }
  for (const auto& [impl, alias] : aliases_) {
    if (alias.sizes() != impl->sizes() || alias.strides() != impl->strides())
      impl->set_sizes_and_strides(alias.sizes(), alias.strides());
  }
}

void Aliases::keep_sizes() {
  for (const auto& [alias, original] : original_storages_) alias->set_resizable(false);
}

}  // namespace tutti::test_device
