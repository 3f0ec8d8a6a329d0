#include "cli/init/look.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <set>
#include <type_traits>
#include <utility>

#include "io/formats/json_document.h"
#include "io/hdf5/hdf5_listing.h"
#include "io/json_rows.h"
#include "io/tokens/token_file.h"
#include "recipe/setting.h"
#include "runtime/error.h"
#include "runtime/regular_file.h"
#include "runtime/text.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLookedAt = 1 << 16;
constexpr std::size_t kLongestCharacter = 4;  // bytes
constexpr int64_t kMostTokensRead = int64_t{1} << 23;
constexpr int64_t kLongestSequence = 128;
constexpr int64_t kShortestSequence = 8;
constexpr int64_t kSamplesWanted = 40;  // in a tenth of the file, which is evaluated on

const std::set<std::string>& unread_endings() {
  static const std::set<std::string> endings = {".pt",  ".pth",  ".npz", ".png", ".jpg",
                                                ".zip", ".jpeg", ".tar", ".pkl"};
  return endings;
}

FoundData tokens_data(const std::string& file, const std::string& recipe_folder, const std::string& kind,
                      int64_t tokens, const std::string& found) {
  FoundData data{.name = fs::path(file).stem(), .found = found, .samples = SampleKind::kTokens};
  data.sequence_length = sequence_for(tokens, file);
  data.count = tokens * 9 / 10 / data.sequence_length;
  const auto lines = [&](const char* split, const char* comment) {
    return RecipeLines{{"kind", toml_text(kind), std::string(split) == "train" ? found : ""},
                       {"path", recipe_path(file, recipe_folder), "relative to this file"},
                       {"sequence_length", std::to_string(data.sequence_length), "tokens of a sample"},
                       {"split", toml_text(split), comment}};
  };
  data.train = lines("train", "all but the last tenth of the file");
  data.eval = lines("eval", "the last tenth");
  return data;
}

// Tokens of two bytes have zeros among them, texts in any encoding of bytes do not.
bool is_text(const std::vector<uint8_t>& head) { return std::ranges::count(head, 0) == 0; }

constexpr std::size_t kUint16Values = std::size_t{1} << 16;

template <class Token>
std::size_t end_of(const std::string& file, std::span<const std::byte> bytes) {
  Token largest = 0;
  for (std::size_t i = 0; i + sizeof(Token) <= bytes.size(); i += sizeof(Token)) {
    Token token;
    std::memcpy(&token, &bytes[i], sizeof token);
    if (std::is_signed_v<Token> && token < Token{0})
      throw UserError({file}, "token " + std::to_string(i / sizeof(Token)) + " is " + std::to_string(token) +
                                  "; tokens are at least 0");
    largest = std::max(largest, token);
  }
  return static_cast<std::size_t>(largest) + 1;
}

// The largest inspected token plus one, in steps of 64; all values of uint16 if the file is too long to be
// inspected whole.
int64_t vocabulary(const TokenFile& file) {
  const std::size_t token = token_bytes(file.format());
  if (token == 1) return 256;
  if (token == sizeof(uint16_t) && file.tokens() > kMostTokensRead) return kUint16Values;
  const auto bytes =
      file.bytes().first(token * static_cast<std::size_t>(std::min(file.tokens(), kMostTokensRead)));
  const bool is_unsigned = file.format() == TokenFormat::kUint32;
  const std::size_t end = token == sizeof(uint16_t)  ? end_of<uint16_t>(file.path(), bytes)
                          : is_unsigned              ? end_of<uint32_t>(file.path(), bytes)
                          : token == sizeof(int32_t) ? end_of<int32_t>(file.path(), bytes)
                                                     : end_of<int64_t>(file.path(), bytes);
  return vocabulary_for(static_cast<int64_t>(end));
}

FoundData tokens_in(const std::string& path, const std::string& recipe_folder) {
  const TokenFile file(path, std::nullopt);
  const std::string type = token_type_name(file.format());
  const int64_t end = vocabulary(file);
  FoundData data =
      tokens_data(path, recipe_folder, "tokens", file.tokens(),
                  std::to_string(file.tokens()) + ' ' + type + " tokens, below " + std::to_string(end));
  if (!file.has_header())
    for (RecipeLines* lines : {&data.train, &data.eval})
      lines->insert(lines->begin() + 2, {"dtype", toml_text(type), "of a token in the file"});
  data.vocabulary = end;
  return data;
}

// What files begin with that are neither texts nor tokens.
constexpr std::pair<std::string_view, const char*> kSignatures[] = {
    {"%PDF", "a PDF file"},
    {"\x89PNG", "a picture"},
    {"\xff\xd8\xff", "a picture"},
    {"GIF8", "a picture"},
    {"II*", "a picture"},
    {std::string_view("MM\0*", 4), "a picture"},
    {"RIFF", "a picture, or sound"},
    {"\x1f\x8b", "a file compressed by gzip"},
    {"\x28\xb5\x2f\xfd", "a file compressed by zstd"},
    {"BZh", "a file compressed by bzip2"},
    {"\xfd"
     "7zXZ",
     "a file compressed by xz"},
    {"PK\x03\x04", "a zip archive"},
    {"PAR1", "a Parquet file without its ending .parquet"},
    {"ARROW1", "an Arrow file"},
    {std::string_view("GGUF\2\0\0\0", 8), "a GGUF file, a model's weights"},
    {std::string_view("GGUF\3\0\0\0", 8), "a GGUF file, a model's weights"},
    {"7z\xbc\xaf\x27\x1c", "a 7z archive"},
    {"Rar!\x1a\x07", "a RAR archive"},
    {"MATLAB 5.0 MAT-file", "a MAT-file of MATLAB"},
    {"Obj\x01", "an Avro file"},
    {"SQLite format 3", "a database of SQLite"},
    {"\x7f"
     "ELF",
     "a program"},
    {"\x80\x02", "a pickle of Python"},
    {"\x80\x03", "a pickle of Python"},
    {"\x80\x04", "a pickle of Python"},
    {"\x80\x05", "a pickle of Python"},
    {"\xff\xfe", "a text in UTF-16"},
    {"\xfe\xff", "a text in UTF-16"},
    {"OggS", "sound"},
    {"ID3", "sound"}};

constexpr std::size_t kArrowPrefix = 12;  // bytes: ones, the length of the metadata, the place of its table

// In Arrow's format for streams: metadata in whole steps of 8 bytes.
bool is_arrow_stream(std::string_view bytes) {
  if (bytes.size() < kArrowPrefix || !bytes.starts_with("\xff\xff\xff\xff")) return false;
  uint32_t length = 0, table = 0;
  std::memcpy(&length, &bytes[4], sizeof length);
  std::memcpy(&table, &bytes[8], sizeof table);
  return length > 0 && length < kLookedAt && length % 8 == 0 && table > 0 && table < length;
}

bool is_mp4(std::string_view bytes) { return bytes.size() >= 8 && bytes.substr(4, 4) == "ftyp"; }

// By the method, the only one there is, and flags: no tokens begin so.
bool is_gzipped(const std::vector<uint8_t>& head) {
  return head.size() > 3 && head[0] == 0x1f && head[1] == 0x8b && head[2] == 8 && head[3] < 0x20;
}

// The first bytes of a file as they are, compressed or not.
std::vector<uint8_t> raw_head(const RegularFile& file) {
  std::vector<uint8_t> head(kLookedAt);
  std::size_t count = 0;
  for (std::size_t more = 1; more > 0 && count < head.size(); count += more)
    more = file.read(reinterpret_cast<char*>(head.data()) + count, head.size() - count);
  head.resize(count);
  return head;
}

// True of a text in UTF-8 that may be cut off within a character.
bool begins_utf8(std::string_view bytes) {
  for (std::size_t cut = 0; cut < kLongestCharacter && cut <= bytes.size(); ++cut)
    if (is_utf8(bytes.substr(0, bytes.size() - cut))) return true;
  return false;
}

// What a file of no known ending looks like, if that is nothing to train on; "" for texts and tokens.
std::string unread_kind(const std::string& file, const std::vector<uint8_t>& head) {
  const std::string_view bytes(reinterpret_cast<const char*>(head.data()), head.size());
  const bool may_be_tokens = lower_case(fs::path(file).extension().string()) == ".bin";
  for (const auto& [signature, kind] : kSignatures) {
    const bool is_doubtful = may_be_tokens && signature.size() < 2 * sizeof(uint16_t);  // such a token may be
    if (!is_doubtful && bytes.starts_with(signature)) return kind;
  }
  if (is_arrow_stream(bytes)) return "a stream of Arrow";
  if (is_mp4(bytes)) return "a video or picture in MP4's container";
  if (!is_text(head)) return "";
  if (!begins_utf8(bytes)) return "neither a text in UTF-8 nor tokens; kind = \"bytes\" reads any file";
  try {
    JsonRows rows(file, bytes);
    const auto first = rows.next();
    if (first && first->starts_with('{')) {
      const JsonDocument whole(*first);
      return rows.is_array() ? "an array of JSON; call it .json" : "JSON lines; call it .jsonl";
    }
  } catch (const UserError&) {  // no JSON
  }
  return "";
}

// The tokenizer for texts in `file`; "" if there is none.
std::string tokenizer_for(const std::string& file, const std::string& given) {
  if (!given.empty()) return given;
  const fs::path beside = fs::path(file).parent_path() / "tokenizer.json";
  std::error_code ignored;
  return fs::exists(beside, ignored) ? beside.string() : "";
}

FoundData look_into_file(const std::string& file, const std::string& recipe_folder,
                         const std::string& tokenizer) {
  const RegularFile opened(file);
  if (!opened.problem().empty()) throw UserError({file}, opened.problem());
  const std::string ending = lower_case(fs::path(file).extension().string());
  if (ending == ".mds")
    throw UserError({file}, "a shard of MosaicML Streaming; name its folder, which has index.json");
  const std::vector<uint8_t> head = raw_head(opened);
  if (is_gzipped(head))
    throw UserError({file},
                    "looks like a file compressed by gzip: unpack it by gunzip; of MNIST's files, name the "
                    "folder");
  if (is_hdf5(file) || is_numpy(file)) return look_into_arrays(file, recipe_folder);
  if (is_table(file)) return look_into_table(file, recipe_folder, tokenizer_for(file, tokenizer));
  if (ending == ".npy" || ending == ".idx") return tokens_in(file, recipe_folder);
  const std::string reads = tokenizer_for(file, tokenizer);
  if (has_json_rows(file) || !tokenizer.empty()) return look_into_texts(file, recipe_folder, reads);
  if (unread_endings().contains(ending))
    throw UserError({file},
                    ending + " files are not read; docs/data.md says how to write an HDF5 file with h5py");
  if (ending == ".h5" || ending == ".hdf5" || ending == ".hdf")
    throw UserError({file}, "not an HDF5 file, whatever it is called");
  const auto size = static_cast<int64_t>(opened.size());
  if (const std::string kind = unread_kind(file, head); !kind.empty())
    throw UserError({file}, "looks like " + kind);
  if (is_text(head) && sniff_table(file)) return look_into_table(file, recipe_folder, reads);
  if (is_text(head) && !reads.empty()) return look_into_texts(file, recipe_folder, reads);
  if (is_text(head)) {
    FoundData data = tokens_data(file, recipe_folder, "bytes", size,
                                 "a text of " + std::to_string(size) + " bytes; every byte is a token");
    data.vocabulary = 256;
    return data;
  }
  return tokens_in(file, recipe_folder);
}

}  // namespace

int64_t sequence_for(int64_t tokens, const std::string& file) {
  int64_t length = kLongestSequence;
  while (length > kShortestSequence && tokens / 10 < kSamplesWanted * length) length /= 2;
  if (tokens / 10 <= length)
    throw UserError({file}, "too short to train on: " + std::to_string(tokens) + " tokens");
  return length;
}

std::string toml_text(const std::string& text) { return Setting(text, "", {}).toml(); }

std::string recipe_path(const std::string& path, const std::string& recipe_folder) {
  const fs::path whole = fs::absolute(path).lexically_normal();
  const fs::path relative = whole.lexically_relative(fs::absolute(recipe_folder).lexically_normal());
  const bool is_far = relative.empty() || relative.string().starts_with("../../../");
  std::string text = (is_far ? whole : relative).string();
  while (text.size() > 1 && text.ends_with('/')) text.pop_back();
  if (!is_utf8(text))
    throw UserError({text}, "a recipe cannot name this path, which is not UTF-8; rename it");
  return toml_text(text);
}

void measure_pixels(FoundData& found, std::span<const uint8_t> pixels, int64_t channels, int64_t plane) {
  std::vector<double> sum(static_cast<std::size_t>(channels)), squares(sum), count(sum);
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    const auto place = static_cast<int64_t>(i);
    const auto c = static_cast<std::size_t>((plane > 0 ? place / plane : place) % channels);
    const double value = pixels[i] / 255.0;
    sum[c] += value;
    squares[c] += value * value;
    count[c] += 1;
  }
  const auto rounded = [](double value) { return std::round(value * 1e4) / 1e4; };
  found.bytes = found.integers = true;
  for (std::size_t c = 0; c < sum.size(); ++c) {
    const double mean = sum[c] / std::max(count[c], 1.0);
    const double variance = squares[c] / std::max(count[c], 1.0) - mean * mean;
    found.mean.push_back(rounded(mean));
    found.std.push_back(variance > 1e-6 ? rounded(std::sqrt(variance)) : 1);
  }
}

FoundData random_data() {
  const RecipeLines lines = {
      {"kind", "\"synthetic\"", "random samples; `tutti list datasets` shows other kinds"},
      {"samples", "4096"},
      {"shape", "[64]", "of one sample; [3, 32, 32] are images"},
      {"classes", "10"}};
  return {.name = "first",
          .found = "random numbers, for a first run; `tutti init FILE` writes a recipe for data of your own",
          .train = lines,
          .eval = {},
          .count = 4096,
          .classes = 10,
          .values = 64};
}

FoundData look_into(const std::string& data, const std::string& recipe_folder, const std::string& tokenizer) {
  std::error_code ignored;
  if (!fs::exists(data, ignored)) throw UserError({data}, "no such file or folder");
  if (auto found = look_into_mds(data, recipe_folder)) return *found;
  if (auto found = look_into_images(data, recipe_folder)) return *found;
  if (!fs::is_directory(data, ignored)) return look_into_file(data, recipe_folder, tokenizer);
  if (auto found = look_into_folder(data, recipe_folder)) return *found;
  if (is_numpy(data)) return look_into_arrays(data, recipe_folder);
  throw UserError(
      {data},
      "a folder without data of a kind that is read here: folders of images, which are the classes, "
      "WebDataset's tar files, index.json of MosaicML Streaming, CIFAR's binary files, MNIST's, two IDX "
      "files, or numpy's .npy; of HDF5, "
      "tables "
      "and text, name the file");
}

}  // namespace tutti
