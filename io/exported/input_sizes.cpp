#include "io/exported/input_sizes.h"

#include "io/formats/zip_file.h"
#include "io/json/json_text.h"
#include "runtime/error.h"

namespace tutti::exported {
namespace {

using ProgramJson = nlohmann::json;

constexpr uint64_t kMostProgramBytes = uint64_t{256} << 20;

// The text of models/model.json below the archive's folder; "" if there is none.
std::string program_text(const std::string& path) {
  const ZipFile archive(path);
  for (const ZipFile::Member& member : archive.members()) {
    if (!member.name.ends_with("/models/model.json") || member.bytes > kMostProgramBytes) continue;
    const ZipFile::Content content = archive.read(member);
    return {reinterpret_cast<const char*>(content.bytes.data()), content.bytes.size()};
  }
  return "";
}

std::string first_input(const ProgramJson& signature) {
  for (const ProgramJson& spec : signature.at("input_specs"))
    if (spec.contains("user_input"))
      return spec.at("user_input").at("arg").at("as_tensor").at("name").get<std::string>();
  return "";
}

}  // namespace

std::vector<int64_t> input_sizes(const std::string& path) try {
  const ProgramJson json = parse_json(program_text(path));
  const ProgramJson& module = json.at("graph_module");
  const std::string input = first_input(module.at("signature"));
  std::vector<int64_t> sizes;
  for (const ProgramJson& size : module.at("graph").at("tensor_values").at(input).at("sizes"))
    sizes.push_back(size.contains("as_int") ? whole_number(size.at("as_int")) : -1);
  return sizes;
} catch (const ProgramJson::exception&) {
  return {};
} catch (const UserError&) {
  return {};
}

}  // namespace tutti::exported
