#include "data/proposals/look.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <utility>
#include <vector>

#include "io/image_folders.h"
#include "io/json/json_document.h"
#include "io/json_rows.h"
#include "runtime/error.h"
#include "runtime/printable.h"
#include "runtime/regular_file.h"
#include "runtime/text.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

std::string ending_of(const std::string& file) { return lower_case(fs::path(file).extension().string()); }

template <std::size_t N>
bool is_any_of(const std::string& ending, const char* const (&endings)[N]) {
  return std::ranges::find(endings, ending) != std::end(endings);
}

constexpr std::size_t kLookedAt = 1 << 16;
constexpr std::size_t kLongestCharacter = 4;  // bytes

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

// True of a text in UTF-8 that may be cut off within a character.
bool begins_utf8(std::string_view bytes) {
  for (std::size_t cut = 0; cut < kLongestCharacter && cut <= bytes.size(); ++cut)
    if (is_utf8(bytes.substr(0, bytes.size() - cut))) return true;
  return false;
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

// Tokens of two bytes have zeros among them, texts in any encoding of bytes have none.
bool is_text(const std::vector<uint8_t>& head) { return std::ranges::count(head, 0) == 0; }

// By the method, the only one there is, and flags: no tokens begin so.
bool is_gzipped(const std::vector<uint8_t>& head) {
  return head.size() > 3 && head[0] == 0x1f && head[1] == 0x8b && head[2] == 8 && head[3] < 0x20;
}

// What a file of no known ending looks like, if that is nothing to train on; "" for texts and tokens.
std::string unread_kind(const std::string& file, const std::vector<uint8_t>& head) {
  const std::string_view bytes(reinterpret_cast<const char*>(head.data()), head.size());
  const bool may_be_tokens = ending_of(file) == ".bin";
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

void require_no_shard(const std::string& file) {
  if (ending_of(file) == ".mds")
    throw UserError({file}, "a shard of MosaicML Streaming; name its folder, which has index.json");
}

void require_no_gzip(const std::string& file, const std::vector<uint8_t>& head) {
  if (is_gzipped(head))
    throw UserError({file},
                    "looks like a file compressed by gzip: unpack it by gunzip; of MNIST's files, name the "
                    "folder");
}

// By the names of files that are read by no kind, or only if they are what they are called.
void require_read_ending(const std::string& file) {
  const std::string ending = ending_of(file);
  if (is_any_of(ending, {".pt", ".pth", ".npz", ".png", ".jpg", ".zip", ".jpeg", ".tar", ".pkl"}))
    throw UserError({file},
                    ending + " files are not read; docs/data.md says how to write an HDF5 file with h5py");
  if (is_any_of(ending, {".h5", ".hdf5", ".hdf"}))
    throw UserError({file}, "not an HDF5 file, whatever it is called");
}

Proposal look_at_file(const std::string& file, LookOptions options) {
  const RegularFile opened(file);
  if (!opened.problem().empty()) throw UserError({file}, opened.problem());
  require_no_shard(file);
  const std::vector<uint8_t> head = raw_head(opened);
  require_no_gzip(file, head);
  options.names_tokenizer = !options.tokenizer.empty();
  options.tokenizer = tokenizer_for(file, options.tokenizer);
  if (const auto arrays = look_at_arrays(file)) return *arrays;
  if (const auto table = look_at_table(file, options)) return *table;
  if (is_any_of(ending_of(file), {".npy", ".idx"})) return look_at_tokens(file);
  if (has_json_rows(file) || options.names_tokenizer) return look_at_texts(file, options.tokenizer);
  require_read_ending(file);
  if (const std::string kind = unread_kind(file, head); !kind.empty())
    throw UserError({file}, "looks like " + kind);
  if (!is_text(head)) return look_at_tokens(file);
  if (const auto table = look_at_sniffed_table(file, options)) return *table;
  return options.tokenizer.empty() ? look_at_bytes(file, static_cast<int64_t>(opened.size()))
                                   : look_at_texts(file, options.tokenizer);
}

// Tables and pictures that a folder has alone; "" = none.
std::string alone_text(const std::string& folder) {
  std::vector<std::string> tables;
  int64_t pictures = 0;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    pictures += is_image_name(name);
    if (is_any_of(ending_of(name), {".csv", ".tsv", ".parquet", ".jsonl"})) tables.push_back(name);
  }
  std::ranges::sort(tables);
  if (!tables.empty())
    return "a folder with the table " + shown(tables[0]) +
           ", which is read if you name the file: tutti init " +
           shown((fs::path(folder) / tables[0]).string());
  if (pictures == 0) return "";
  return grouped(pictures) +
         " pictures and no classes: move the pictures of each class into a folder of its own, or name a "
         "table with a column of their paths, and a column of targets (docs/data.md, Tables of images)";
}

}  // namespace

Proposal random_data() {
  return {
      .name = "first",
      .summary = "random numbers, for a first run; `tutti init FILE` writes a recipe for data of your own",
      .train = {{"kind", "\"synthetic\"", "random samples; `tutti list datasets` shows other kinds"},
                {"samples", "4096"},
                {"shape", "[64]", "of one sample; [3, 32, 32] are images"},
                {"classes", "10"}},
      .count = 4096};
}

Proposal look_at(const std::string& path, const LookOptions& options) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) throw UserError({path}, "no such file or folder");
  if (const auto mds = look_at_mds(path)) return *mds;
  if (const auto shards = look_at_tar_shards(path)) return *shards;
  if (!fs::is_directory(path, ignored)) return look_at_file(path, options);
  if (!options.targets.empty()) throw UserError({path}, "--target is for tables, and this is a folder");
  if (!options.tokenizer.empty())
    throw UserError({path}, "--tokenizer is for texts in a file, and this is a folder");
  for (const auto look :
       {look_at_masks, look_at_image_folder, look_at_cifar, look_at_mnist, look_at_idx, look_at_arrays})
    if (const auto proposal = look(path)) return *proposal;
  if (const std::string text = alone_text(path); !text.empty()) throw UserError({path}, text);
  throw UserError(
      {path},
      "a folder without data of a kind that is read here: folders of images, which are the classes, "
      "WebDataset's tar files, index.json of MosaicML Streaming, CIFAR's binary files, MNIST's, two IDX "
      "files, or numpy's .npy; of HDF5, "
      "tables "
      "and text, name the file");
}

}  // namespace tutti
