#include <caffe2/serialize/inline_container.h>

#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "models/exported/exported_model.h"
#include "models/script/script_model.h"
#include "models/zoo/options.h"
#include "tests/fuzz/file_in_memory.h"
#include "tests/fuzz/targets.h"

namespace tutti::fuzz {
namespace {

// A file of libtorch's with one record that is another.
std::string file_with(const std::string& source, const std::string& record,
                      const std::function<std::string(const std::string& text)>& change) {
  const std::string path = write_file(source, "");
  caffe2::serialize::PyTorchStreamReader reader(TUTTI_SOURCE_DIR "/tests/golden/" + source);
  caffe2::serialize::PyTorchStreamWriter writer(path);
  for (const std::string& name : reader.getAllRecords()) {
    if (name.starts_with(".data/") || name == "version" || name == "byteorder") continue;
    const auto [data, bytes] = reader.getRecord(name);
    std::string text(static_cast<const char*>(data.get()), bytes);
    if (name == record) text = change(text);
    writer.writeRecord(name, text.data(), text.size());
  }
  writer.writeEndOfFile();
  return path;
}

}  // namespace

void script(const std::string& bytes) {
  const std::string path = write_file("net.pt", bytes);
  read_or_refuse([&] { ScriptModel model({.path = path}); });
}

void script_objects(const std::string& bytes) {
  const std::string path =
      file_with("scripts/writes_buffer.pt", "data.pkl", [&](const std::string&) { return bytes; });
  read_or_refuse([&] { ScriptModel model({.path = path}); });
}

void program_operators(const std::string& bytes) {
  const std::string script =
      file_with("scripts/writes_buffer.pt", "code/__torch__/torch/nn/modules/linear/___torch_mangle_28.py",
                [&](std::string text) {
                  const std::string call = "return torch.linear(input, weight, bias)";
                  return text.replace(text.find(call), call.size(), bytes);
                });
  read_or_refuse([&] { ScriptModel model({.path = script}); });

  const std::string program =
      file_with("exported/tied.pt2", "models/model.json", [&](const std::string& text) {
        auto json = nlohmann::json::parse(text);
        for (auto& node : json["graph_module"]["graph"]["nodes"]) node["target"] = "torch.ops." + bytes;
        return json.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
      });
  ExportedOptions options;
  options.path = program;
  read_or_refuse([&] { ExportedModel model(options); });
}

}  // namespace tutti::fuzz
