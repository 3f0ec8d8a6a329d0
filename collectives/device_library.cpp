#include "collectives/device_library.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "collectives/device_entry.h"
#include "runtime/error.h"
#include "runtime/process/this_process.h"
#include "tensors/kernels/graph.h"
#include "tensors/memory/meter.h"

namespace tutti {
namespace {

constexpr const char* kForGpus = "libtutti_cuda.so";

std::string path_beside_this_code(const std::string& name) {
  const std::string here = path_of_code(reinterpret_cast<void*>(&path_beside_this_code));
  return std::filesystem::path(here).parent_path() / name;
}

std::string path_of(const std::string& kind) {
  if (kind != "test") return path_beside_this_code(kForGpus);
  const std::string name = "libtutti_test_device.so", beside = path_beside_this_code(name);
  return std::filesystem::exists(beside) ? beside : name;
}

// Defaults of the user's environment, which CUDA's half of libtorch reads when it is loaded.
void set_defaults_of_allocator() {
  if (std::getenv("PYTORCH_CUDA_ALLOC_CONF") == nullptr)
    setenv("PYTORCH_ALLOC_CONF", "expandable_segments:True", /*replace=*/0);
}

}  // namespace

bool DeviceLibrary::has_gpu_driver() {
  return access("/dev/nvidiactl", F_OK) == 0 || access("/dev/dxg", F_OK) == 0;
}

std::shared_ptr<const DeviceLibrary> DeviceLibrary::load(const std::string& kind) {
  if (kind != "test") set_defaults_of_allocator();
  return std::make_shared<DeviceLibrary>(path_of(kind));
}

std::shared_ptr<const DeviceLibrary> DeviceLibrary::of(const Setting& section) {
  const std::string& kind = section.at("kind").text();
  const bool is_auto = kind == "auto";
  if (kind == "cpu" || (is_auto && !has_gpu_driver())) return nullptr;
  try {
    auto library = load(kind);
    if (library->device_count() > 0) return library;
    if (!is_auto) throw UserError("the driver shows no GPU");
  } catch (const UserError& error) {
    if (!is_auto) section.at("kind").fail(error);
  }
  return nullptr;
}

DeviceLibrary::DeviceLibrary(const std::string& path) : path_(path) {
  handle_ = dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle_ == nullptr) {
    throw UserError(std::string("no such device can be used: ") + dlerror() +
                    (is_gpu() ? " (built with -DTUTTI_CUDA=OFF, or without nvcc?)"
                              : " (the tests' device: it is built with the tests)"));
  }
  const std::string theirs = symbol<decltype(tutti_device_build_stamp)>("tutti_device_build_stamp")();
  const std::string ours = build_stamp(theirs);
  if (theirs != ours) throw UserError(path_ + " is of another build: '" + theirs + "', not '" + ours + "'");
}

int DeviceLibrary::device_count() const {
  return symbol<decltype(tutti_device_count)>("tutti_device_count")();
}

bool DeviceLibrary::is_gpu() const { return path_.ends_with(kForGpus); }

Device DeviceLibrary::device(int rank, int memory_slot) const {
  const int count = device_count();
  if (count == 0) throw UserError("no GPU can be used: the driver shows none");
  const char* options = std::getenv("TUTTI_TEST_DEVICE");
  symbol<decltype(tutti_device_start)>("tutti_device_start")(options ? options : "");
  const bool is_watched = symbol<decltype(tutti_device_watch_memory)>("tutti_device_watch_memory")(
      &Meter::before_device_allocation);
  if (!is_watched)
    Meter::limit_devices_by(symbol<decltype(tutti_device_limit_memory)>("tutti_device_limit_memory"));
  make_graphs_by(symbol<decltype(tutti_device_make_graph)>("tutti_device_make_graph"));
  const auto type = static_cast<c10::DeviceType>(symbol<decltype(tutti_device_type)>("tutti_device_type")());
  const c10::Device where(type, static_cast<c10::DeviceIndex>(rank % count));
  return {where, memory_slot, symbol<decltype(tutti_device_name)>("tutti_device_name")(where.index())};
}

CommunicatorId DeviceLibrary::make_id() const {
  CommunicatorId id;
  symbol<decltype(tutti_device_make_id)>("tutti_device_make_id")(&id);
  return id;
}

std::unique_ptr<Communicator> DeviceLibrary::connect(const CommunicatorId& id, const Device& device, int rank,
                                                     const std::vector<int>& ranks) const {
  return std::unique_ptr<Communicator>(symbol<decltype(tutti_device_connect)>("tutti_device_connect")(
      &id, device.where.index(), rank, &ranks));
}

template <class Function>
Function* DeviceLibrary::symbol(const char* name) const {
  void* symbol = dlsym(handle_, name);
  if (symbol == nullptr) throw UserError(path_ + " has no " + name + ": it is of another build");
  return reinterpret_cast<Function*>(symbol);
}

}  // namespace tutti
