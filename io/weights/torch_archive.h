#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "io/mapped_file.h"
#include "io/weights/pickle.h"

namespace caffe2::serialize {
class PyTorchStreamReader;
}

namespace tutti {

// The zip archive of torch.save: a pickle, and a record for each storage. Errors (UserError) name the file.
class TorchArchive {
 public:
  // Bytes `begin` to `begin` + `size` of a file, which must outlive the archive; by default all of them.
  explicit TorchArchive(const MappedFile& file, uint64_t begin = 0, uint64_t size = UINT64_MAX);
  ~TorchArchive();

  [[noreturn]] void fail(const std::string& what) const;
  bool has(const std::string& record) const;

  // Reads "data.pkl".
  Pickle pickle(const PickledObjects& objects = kObjectsOfStateDicts) const;

  // Where a tensor's numbers are in the file.
  struct Place {
    uint64_t at = 0;  // of the first number
    Shape strides;    // empty: contiguous
  };
  Place place(const PickledTensor& tensor, const std::string& name) const;

 private:
  void require_archive() const;
  std::string record(const std::string& name, uint64_t most_bytes) const;
  std::pair<uint64_t, uint64_t> place(const std::string& record) const;
  template <class Function>
  auto guarded(const Function& function) const -> decltype(function());

  const MappedFile& file_;
  const uint64_t begin_;
  std::span<const std::byte> bytes_;
  std::unique_ptr<caffe2::serialize::PyTorchStreamReader> reader_;
};

}  // namespace tutti
