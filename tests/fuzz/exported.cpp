#include <ATen/ops/empty.h>

#include "io/exported/archive.h"
#include "io/exported/program.h"
#include "io/formats/dtypes.h"
#include "models/exported/exported_model.h"
#include "models/zoo/options.h"
#include "tests/fuzz/file_in_memory.h"
#include "tests/fuzz/targets.h"

namespace tutti::fuzz {
namespace {

constexpr uint64_t kMostBytes = 1 << 20;  // of a tensor that is read

}  // namespace

void exported_archive(const std::string& bytes) {
  const std::string path = write_file("net.pt2", bytes);
  read_or_refuse([&] {
    const exported::Archive archive(path);
    const exported::Program program = exported::parse_program(archive.program());
    for (const auto& [value, stored] : program.stored) {
      archive.place(stored.name);
      if (contiguous_bytes(stored.shape, stored.dtype).value() > kMostBytes) continue;
      at::Tensor to = at::empty(stored.shape, stored.dtype);
      read_or_refuse([&] { archive.read(stored.name, to); });
    }
  });
  ExportedOptions options;
  options.path = path;
  read_or_refuse([&] { ExportedModel model(options); });
}

void exported_program(const std::string& bytes) {
  read_or_refuse([&] { exported::parse_program(bytes); });
}

}  // namespace tutti::fuzz
