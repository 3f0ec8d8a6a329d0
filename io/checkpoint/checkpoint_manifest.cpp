#include <charconv>

#include "io/checkpoint/checkpoint.h"
#include "io/formats/dtypes.h"
#include "io/formats/json_text.h"
#include "runtime/error.h"
#include "runtime/hashes.h"

namespace tutti {
namespace {

using Json = nlohmann::ordered_json;  // keeps the state's keys in their order

constexpr int kFormat = 1;

std::string hex(uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

uint64_t from_hex(const std::string& text) {
  uint64_t value = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (end.ec != std::errc() || end.ptr != text.data() + text.size())
    throw OperatingError("bad hash '" + text + "'");
  return value;
}

// The text before and after the body. A manifest with another layout is serialised again for its hash.
constexpr std::string_view kBeforeHash = R"({"hash":")", kBeforeBody = R"(","manifest":)", kBehindBody = "}";
constexpr std::size_t kBodyAt = kBeforeHash.size() + 16 + kBeforeBody.size();

std::string hash_of(std::string_view body) { return hex(XXH3_64bits(body.data(), body.size())); }

Json to_json(const CheckpointPiece& piece) {
  return {{"name", piece.name},     {"dtype", dtype_name(piece.dtype)}, {"shape", piece.shape},
          {"offset", piece.offset}, {"extent", piece.extent},           {"at", piece.at}};
}

// Renames the optimizer's tensors of older checkpoints.
std::string name_today(const std::string& name) {
  constexpr std::string_view kBefore = "optimizer/";
  return name.starts_with(kBefore) ? std::string(kOptimizersPrefix) + name.substr(kBefore.size()) : name;
}

CheckpointPiece piece_from(const Json& json) {
  CheckpointPiece piece;
  piece.name = name_today(json.at("name"));
  const auto dtype = dtype_of_name(json.at("dtype"));
  if (!dtype) throw OperatingError(piece.name + ": unknown dtype " + json.at("dtype").dump());
  piece.dtype = *dtype;
  piece.shape = json.at("shape").get<Shape>();
  piece.offset = json.at("offset").get<Shape>();
  piece.extent = json.at("extent").get<Shape>();
  piece.at = json.at("at");
  return piece;
}

Json to_json(const RankFile& file) {
  Json pieces = Json::array();
  for (const CheckpointPiece& piece : file.pieces) pieces.push_back(to_json(piece));
  return {{"file", file.file}, {"bytes", file.bytes}, {"hash", hex(file.hash)}, {"pieces", pieces}};
}

RankFile file_from(const Json& json) {
  RankFile file{json.at("file"), json.at("bytes"), from_hex(json.at("hash")), {}};
  for (const Json& piece : json.at("pieces")) file.pieces.push_back(piece_from(piece));
  return file;
}

CheckpointManifest manifest_from(const Json& body) {
  if (body.at("format") != kFormat)
    throw OperatingError("format " + body.at("format").dump() + ", expected 1");
  CheckpointManifest manifest;
  for (const Json& file : body.at("files")) manifest.files.push_back(file_from(file));
  if (!body.at("state").is_null()) manifest.state = body.at("state").dump();
  return manifest;
}

}  // namespace

std::string CheckpointManifest::to_json() const {
  Json lines = Json::array();
  for (const RankFile& file : files) lines.push_back(tutti::to_json(file));
  const Json manifest = {{"format", kFormat},
                         {"files", std::move(lines)},
                         {"state", state.empty() ? Json() : parse_json<Json>(state)}};
  const std::string body = without_raw_controls(manifest.dump());
  std::string text(kBeforeHash);
  return text.append(hash_of(body)).append(kBeforeBody).append(body).append(kBehindBody);
}

CheckpointManifest CheckpointManifest::from_json(const std::string& text) try {
  const Json json = parse_json<Json>(text);
  const Json& body = json.at("manifest");
  const std::string_view as_written = std::string_view(text).substr(std::min(kBodyAt, text.size()));
  const auto& hash = json.at("hash");
  const std::string again = body.dump();  // older ones have controls as they are
  if (hash != hash_of(as_written.substr(0, as_written.size() - 1)) && hash != hash_of(again) &&
      hash != hash_of(without_raw_controls(again)))
    throw OperatingError("its hash does not match its content");
  return manifest_from(body);
} catch (const Json::exception& error) {
  throw OperatingError("it is torn: " + json_problem(error));
}

}  // namespace tutti
