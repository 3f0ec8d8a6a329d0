#include "data/texts/tokenized_texts.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>
#include <span>
#include <thread>
#include <utility>

#include "data/texts/tokens_of_parts.h"
#include "io/replaced_file.h"
#include "runtime/disk.h"
#include "runtime/error.h"
#include "runtime/hashes.h"
#include "runtime/process/process_watch.h"
#include "runtime/text.h"
#include "runtime/workers.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kVersion = 1;                             // of what is in the folder
constexpr int64_t kVersionOfPrompts = 5;                    // the same where texts have parts
constexpr std::size_t kBytesAtOnce = std::size_t{4} << 20;  // of texts that threads share
constexpr uint64_t kMostLeftOutText = uint64_t{1} << 16;
constexpr int64_t kUint16Values = int64_t{1} << 16;

struct Text {
  std::string_view text;
  bool is_json = false;
  std::string place;
};

struct Encoded : EncodedDocument {
  std::string problem;  // of a line that is left out
  std::exception_ptr error = nullptr;
};

// Appends to a file in large pieces.
class Output {
 public:
  Output(Disk& disk, const std::string& path) : fresh_(disk, path), file_(disk.open(fresh_.name(), true)) {}

  template <class Number>
  void add(std::span<const Number> numbers) {
    const auto bytes = std::as_bytes(numbers);
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
    if (buffer_.size() >= kBytesAtOnce) flush();
  }
  void finish() {
    flush();
    file_->sync();
    file_->close();
  }
  void commit() { fresh_.commit(); }

 private:
  void flush() {
    file_->append(buffer_);
    buffer_.clear();
  }

  FreshFile fresh_;
  std::unique_ptr<WritableFile> file_;
  std::vector<std::byte> buffer_;
};

class Writer {
 public:
  Writer(const Tokenization& how, const std::string& stem)
      : how_(how),
        stem_(stem),
        format_(how.tokenizer->vocab_size() <= kUint16Values ? TokenFormat::kUint16 : TokenFormat::kInt32),
        tokens_(disk_, stem + ".bin"),
        workers_(start_workers(how.threads)) {
    if (how.format.has_prompts()) counts_.emplace(disk_, stem + ".counts");
  }

  void write() {
    for (const std::string& path : how_.files) {
      const MappedFile file(path);
      std::vector<Text> texts;
      std::size_t bytes = 0;
      const auto encode_all = [&] {
        write(texts);
        texts.clear();
        bytes = 0;
      };
      for_each_document(file, [&](std::string_view text, bool is_json, const std::string& place) {
        texts.push_back({text, is_json, place});
        bytes += text.size();
        if (bytes >= kBytesAtOnce) encode_all();
      });
      encode_all();
    }
    finish();
  }

 private:
  void write(const std::vector<Text>& texts) {
    require_no_held_stop("texts became tokens");
    std::vector<Encoded> encoded(texts.size());
    workers_->for_each(texts.size(), [&](std::size_t i) {
      encoded[i] = encode(texts[i]);
      return !encoded[i].error && (how_.skip_bad || encoded[i].problem.empty());
    });
    for (std::size_t i = 0; i < texts.size(); ++i) append(texts[i], encoded[i]);
  }

  Encoded encode(const Text& text) const {
    Encoded encoded;
    try {
      static_cast<EncodedDocument&>(encoded) = encode_document(how_, text.text, text.is_json);
    } catch (const UserError& error) {
      encoded.problem = error.what();
    } catch (...) {
      encoded.error = std::current_exception();
    }
    return encoded;
  }

  void append(const Text& text, Encoded& encoded) {
    if (encoded.error) std::rethrow_exception(encoded.error);
    if (encoded.teaches_nothing()) encoded.problem = kTeachesNothing;
    if (!encoded.problem.empty()) {
      const std::string what = text.place + ": " + encoded.problem;
      if (!how_.skip_bad && !encoded.teaches_nothing()) throw UserError(what);
      if (left_out_++ == 0) first_left_out_ = what;
      return;
    }
    if (encoded.ids.empty()) return;
    if (encoded.ids.size() > std::numeric_limits<int32_t>::max())
      throw UserError(text.place + ": a document of more than 2 billion tokens");
    lengths_.push_back(static_cast<int32_t>(encoded.ids.size()));
    if (counts_) {
      counts_->add(std::span<const uint8_t>(encoded.counts));
    }
    if (format_ == TokenFormat::kInt32) return tokens_.add(std::span<const uint32_t>(encoded.ids));
    const std::vector<uint16_t> narrow(encoded.ids.begin(), encoded.ids.end());
    tokens_.add(std::span<const uint16_t>(narrow));
  }

  void finish() {
    if (lengths_.empty() && left_out_ > 0)
      throw UserError("every text was left out; the first: " + first_left_out_);
    tokens_.finish();
    if (counts_) counts_->finish();
    // Tokens without the rest are never there: they would train as other tokens, or all of them.
    for (const char* ending : {".bin", ".idx", ".counts", ".left_out"}) disk_.remove_all(stem_ + ending);
    if (counts_) counts_->commit();
    write_left_out();
    write_index();
    tokens_.commit();
  }

  void write_left_out() {
    if (left_out_ == 0) return;
    Output text(disk_, stem_ + ".left_out");
    const std::string what = std::to_string(left_out_) + (left_out_ == 1 ? " line was" : " lines were") +
                             " left out; the first: " + first_left_out_;
    text.add(std::span(what.data(), std::min<std::size_t>(what.size(), kMostLeftOutText)));
    text.finish();
    text.commit();
  }

  void write_index() {
    Output index(disk_, stem_ + ".idx");
    const std::string header = megatron_header(format_, lengths_.size());
    index.add(std::span(header.data(), header.size()));
    index.add(std::span<const int32_t>(lengths_));
    int64_t byte = 0;
    for (const int32_t length : lengths_) {
      index.add(std::span<const int64_t>(&byte, 1));
      byte += length * static_cast<int64_t>(token_bytes(format_));
    }
    for (int64_t document = 0; document <= std::ssize(lengths_); ++document)
      index.add(std::span<const int64_t>(&document, 1));
    index.finish();
    index.commit();
  }

  const Tokenization& how_;
  std::string stem_;
  PosixDisk disk_;
  TokenFormat format_;
  Output tokens_;
  std::optional<Output> counts_;
  std::vector<int32_t> lengths_;
  int64_t left_out_ = 0;
  std::string first_left_out_;
  std::unique_ptr<Workers> workers_;
};

// Of all that the tokens depend on. Of files, size and time stand for the content.
uint64_t digest_of(const Tokenization& how) {
  StreamedHash hash;
  const auto number = [&hash](uint64_t value) { hash.add(std::as_bytes(std::span(&value, 1))); };
  const auto text = [&](const std::string& value) {
    number(value.size());
    hash.add(std::as_bytes(std::span(value)));
  };
  number(how.format.has_prompts() ? kVersionOfPrompts : kVersion);
  number(how.tokenizer->digest());
  for (const auto& id : {how.begin, how.end}) number(id ? *id + uint64_t{1} : 0);
  number(how.skip_bad ? 1 : 0);
  const DocumentFormat& format = how.format;
  const std::string turn = format.chat_template ? format.chat_template->source() : format.turn;
  for (const auto& key : {format.text, format.response, format.messages, turn}) text(key);
  number(format.chat_template ? 1 : 0);
  for (const auto& key : format.prompt) text(key);
  for (const std::string& file : how.files) {
    struct stat status {};
    if (stat(file.c_str(), &status) != 0)
      throw UserError({file}, std::string("cannot be opened: ") + std::strerror(errno));
    text(fs::absolute(file).lexically_normal().string());
    for (const auto value : {status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec})
      number(static_cast<uint64_t>(value));
  }
  return hash.value();
}

constexpr std::chrono::milliseconds kAskAgainAfter{50};

// Holds the lock of the folder's name, or returns null once another process has written the folder.
std::unique_ptr<DiskLock> lock_unless_written(Disk& disk, const std::string& whole) {
  while (!disk.exists(whole)) {
    if (auto lock = disk.lock(whole + ".lock", "tokenizes"))
      return disk.exists(whole) ? nullptr : std::move(lock);
    require_no_held_stop("another process made tokens of the texts");
    std::this_thread::sleep_for(kAskAgainAfter);
  }
  return nullptr;
}

}  // namespace

TokenizedTexts TokenizedTexts::open(const Tokenization& how, const std::string& folder) {
  PosixDisk disk;
  disk.make_folders(folder);
  const std::string whole =
      folder + '/' + formatted("%016llx", static_cast<unsigned long long>(digest_of(how)));
  if (const auto lock = lock_unless_written(disk, whole)) {
    const std::string part = whole + ".part";
    disk.remove_all(part);
    disk.make_folders(part);
    tokenize(how, part + "/tokens");
    disk.rename(part, whole);
    disk.sync_folder(folder);
  }
  return TokenizedTexts(whole + "/tokens");
}

TokenizedTexts::TokenizedTexts(const std::string& stem)
    : tokens_(std::make_shared<const TokenFile>(stem + ".idx", std::nullopt)) {
  const PosixDisk disk;
  if (disk.exists(stem + ".left_out")) left_out_ = disk.read_text(stem + ".left_out", kMostLeftOutText);
  if (!disk.exists(stem + ".counts")) return;
  counts_ = std::make_shared<const MappedFile>(stem + ".counts");
  if (std::ssize(counts_->bytes()) != tokens_->tokens())
    throw UserError({counts_->path()},
                    "not a byte for each of " + std::to_string(tokens_->tokens()) + " tokens");
}

const uint8_t* TokenizedTexts::counts() const {
  return counts_ ? reinterpret_cast<const uint8_t*>(counts_->bytes().data()) : nullptr;
}

namespace {

// Adds tokens to a document, with a byte for each where some do not count.
class DocumentWriter {
 public:
  explicit DocumentWriter(const Tokenization& how) : how_(how) {}

  void add(const std::vector<uint32_t>& ids, bool counts) {
    document.ids.insert(document.ids.end(), ids.begin(), ids.end());
    if (how_.format.has_prompts()) document.counts.resize(document.ids.size(), counts ? 1 : 0);
  }

  void add_parts(const TextDocument& parts) {
    const auto tokens = tokens_of_parts(*how_.tokenizer, parts);
    for (std::size_t i = 0; i < parts.size(); ++i) add(tokens[i], parts[i].counts);
    if (!how_.format.messages.empty()) ends_counting = !parts.empty() && parts.back().counts;
  }

  // The token before and behind the document, unless its chat template has written that itself.
  void add_around() {
    auto& [ids, counts] = document;
    const bool may_have = how_.format.chat_template != nullptr && !ids.empty();
    if (how_.begin && !(may_have && ids.front() == *how_.begin)) {
      ids.insert(ids.begin(), *how_.begin);
      if (how_.format.has_prompts()) counts.insert(counts.begin(), 0);
    }
    if (how_.end && !(may_have && ids.back() == *how_.end)) add({*how_.end}, ends_counting);
  }

  EncodedDocument document;
  bool ends_counting = true;

 private:
  const Tokenization& how_;
};

}  // namespace

EncodedDocument encode_document(const Tokenization& how, std::string_view text, bool is_json) {
  DocumentWriter out(how);
  if (is_json) {
    out.add_parts(how.format.read(text));
  } else {
    if (!is_utf8(text))
      throw UserError("no text in UTF-8; expand a compressed file, convert a text in another encoding");
    how.tokenizer->encode(text, out.document.ids, false);
    out.add({}, true);
  }
  out.add_around();
  return std::move(out.document);
}

bool EncodedDocument::teaches_nothing() const {
  return !counts.empty() && std::ranges::count(counts, 0) == std::ssize(counts);
}

namespace {

// Of a template whose answers end with no token by which a model could stop.
std::string template_advice(const ChatTemplate& used, const Tokenizer& tokenizer) {
  const auto ids = tokenizer.encode(used.behind_answer(), false);
  if (tokenizer.decode(ids, true) != tokenizer.decode(ids, false)) return "";
  return "no special token of this tokenizer counts behind an answer that its chat template writes: a model "
         "does not learn where to stop; give add_eos_token = true, or turn";
}

}  // namespace

std::string Tokenization::advice() const {
  if (format.messages.empty()) return "";
  if (format.chat_template) return end ? "" : template_advice(*format.chat_template, *tokenizer);
  const std::string_view turn = format.turn;
  for (std::size_t i = turn.find_first_of("<["); i != std::string_view::npos;
       i = turn.find_first_of("<[", i + 1)) {
    const std::size_t end = turn.find_first_of(turn[i] == '<' ? "> \n" : "] \n", i);
    if (end == std::string_view::npos || turn[end] == ' ' || turn[end] == '\n') continue;
    const std::string marker(turn.substr(i, end + 1 - i));
    if (const auto ids = tokenizer->encode(marker, false); ids.size() != 1)
      return "the marker " + marker + " of turn is " + std::to_string(ids.size()) +
             " tokens of this tokenizer, and no token of its own; a tokenizer made for chats has such "
             "tokens, or "
             "a chat template";
  }
  return "";
}

void tokenize(const Tokenization& how, const std::string& stem) { Writer(how, stem).write(); }

std::string default_token_folder() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  const std::string root = cache && *cache ? cache : std::string(home ? home : "") + "/.cache";
  return root + "/tutti/tokens";
}

}  // namespace tutti
