#include "io/weights/script_file.h"

#include <c10/core/ScalarType.h>
#include <c10/util/Exception.h>
#include <caffe2/serialize/inline_container.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <span>
#include <stdexcept>
#include <string_view>

#include "io/weights/pickle.h"
#include "runtime/error.h"
#include "tensors/memory/out_of_memory.h"

namespace tutti {
namespace {

constexpr uint64_t kMostTextBytes = uint64_t{256} << 20;
constexpr std::string_view kClassesOfLibtorch = "__torch__.torch.classes", kClassesOfFile = "__torch__.";

bool is_class_of_file(const std::string& global) {
  return global.starts_with(kClassesOfFile) && !global.starts_with(kClassesOfLibtorch);
}

bool wraps_a_value(const std::string& global) {
  constexpr std::array kKnown{"build_intlist", "build_doublelist", "build_boollist", "build_tensorlist",
                              "restore_type_tag"};
  return std::ranges::any_of(
      kKnown, [&](const char* one) { return global == std::string("torch.jit._pickle.") + one; });
}

bool is_of_script(const std::string& global) {
  return is_class_of_file(global) || wraps_a_value(global) || global == "builtins.complex" ||
         kObjectsOfStateDicts.has(global);
}

PickledValue called_by_script(const std::string& global, const std::vector<PickledValue*>& arguments) {
  if (is_class_of_file(global)) return {PickledDict()};
  if (global == "builtins.complex") return {};
  if (!wraps_a_value(global)) return kObjectsOfStateDicts.called(global, arguments);
  if (arguments.empty()) throw std::invalid_argument("expected a value");
  return *arguments.front();
}

constexpr PickledObjects kObjectsOfScripts{is_of_script, called_by_script, "which no script needs"};

class ScriptFile {
 public:
  explicit ScriptFile(const std::string& path)
      : path_(path), bytes_(std::filesystem::file_size(path)), reader_(path) {}

  void require_plain_objects() {
    if (reader_.hasRecord("model.json"))
      fail("it is in the format of PyTorch before 1.2; load it in PyTorch and torch.jit.save it again");
    for (const std::string archive : {"constants", "data"}) look_at_objects(archive);
  }

  std::vector<ScriptCode> code() {
    std::vector<ScriptCode> codes;
    for (const std::string& record : reader_.getAllRecords())
      if (record.starts_with("code/") && record.ends_with(".py")) codes.push_back({record, text(record)});
    return codes;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw UserError({path_}, what); }

  std::string text(const std::string& record) {
    if (reader_.getRecordSize(record) > kMostTextBytes) fail("its record '" + record + "' is too large");
    const auto [data, size] = reader_.getRecord(record);
    return {static_cast<const char*>(data.get()), size};
  }

  void look_at_objects(const std::string& archive) {
    const std::string bytes = text(archive + ".pkl");
    const Pickle pickle(std::as_bytes(std::span(bytes)), path_, kObjectsOfScripts);
    for (const PickledValue& value : pickle.values())
      if (const auto* storage = std::get_if<PickledStorage>(&value.value)) require_stored(archive, *storage);
  }

  void require_stored(const std::string& archive, const PickledStorage& storage) {
    if (storage.numbers == 0) return;
    const std::string record = archive + "/" + storage.key;
    const uint64_t expected = static_cast<uint64_t>(storage.numbers) * c10::elementSize(storage.dtype),
                   stored = reader_.hasRecord(record) ? reader_.getRecordSize(record) : 0;
    if (stored > bytes_) fail("its record '" + record + "' is too large");
    if (stored < expected)
      fail("its record '" + record + "' has " + std::to_string(stored) + " bytes, " +
           std::to_string(expected) + " are expected");
  }

  const std::string& path_;
  uint64_t bytes_;  // of the file; libtorch compresses no numbers
  caffe2::serialize::PyTorchStreamReader reader_;
};

}  // namespace

std::vector<ScriptCode> read_script_code(const std::string& path) try {
  ScriptFile file(path);
  file.require_plain_objects();
  return file.code();
} catch (const c10::Error& error) {
  if (is_lack_of_memory(error)) throw;
  throw UserError({path}, "it is no whole file of torch.jit.save");
}

}  // namespace tutti
