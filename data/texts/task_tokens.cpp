#include "data/texts/task_tokens.h"

#include "data/texts/documents.h"
#include "runtime/error.h"
#include "runtime/printable.h"

namespace tutti {
namespace {

constexpr int64_t kByteValues = 256;

}  // namespace

bool is_language_task(const SampleSpec& samples) {
  return samples.shapes.contains(kChoiceTargets) || samples.shapes.contains(kReferences);
}

std::vector<int64_t> TaskTokens::encode(std::string_view text, bool with_special) const {
  if (tokenizer) {
    const std::vector<uint32_t> ids = tokenizer->encode(text, with_special);
    return {ids.begin(), ids.end()};
  }
  std::vector<int64_t> bytes;
  for (const char c : text) bytes.push_back(static_cast<unsigned char>(c));
  return bytes;
}

int64_t TaskTokens::start() const {
  if (!tokenizer) return '\n';
  const SpecialIds& special_ids = tokenizer->special_ids();
  if (special_ids.begin) return *special_ids.begin;
  if (special_ids.end) return *special_ids.end;
  throw UserError("an empty text needs a token that begins or ends texts, and the tokenizer has none");
}

int64_t TaskTokens::end() const {
  return tokenizer && tokenizer->special_ids().end ? int64_t{*tokenizer->special_ids().end} : -1;
}

int64_t TaskTokens::vocab_size() const { return tokenizer ? tokenizer->vocab_size() : kByteValues; }

const std::string& TaskMember::in(const JsonDocument& line) {
  if (!name_.empty()) return name_;
  std::string names;
  for (const std::string& usual : usual_) {
    names += (names.empty() ? "'" : ", '") + usual + "'";
    if (!line.has(usual)) continue;
    is_guess_ = true;
    return name_ = usual;
  }
  throw UserError("no member " + names + "; give the member's name in the recipe");
}

std::string guesses_text(const std::vector<std::pair<const char*, const TaskMember*>>& members) {
  std::string text;
  for (const auto& [what, member] : members)
    if (member->is_guess())
      text += (text.empty() ? "as no key says otherwise, " : ", ") + std::string(what) + " is '" +
              printable(member->name()) + "'";
  return text;
}

void for_each_task(const std::vector<std::string>& files, const char* what,
                   const std::function<void(const JsonDocument& line)>& read) {
  bool is_empty = true;
  for (const std::string& path : files) {
    const MappedFile file(path);
    for_each_document(file, [&](std::string_view line, bool is_json, const std::string& place) {
      if (!is_json) throw UserError({path}, "expected lines of JSON, in a file named .jsonl");
      is_empty = false;
      try {
        read(JsonDocument(line));
      } catch (const UserError& error) {
        throw UserError(place + ": " + error.message());
      }
    });
  }
  if (is_empty) throw UserError({files.front()}, std::string("there is no ") + what + " in it");
}

void add_line(std::string& lines, const std::string& line) {
  if (!line.empty()) lines += (lines.empty() ? "" : "\n") + line;
}

}  // namespace tutti
