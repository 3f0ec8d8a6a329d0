#include "data/texts/documents.h"

#include <utility>

#include "io/json/json_document.h"
#include "io/json_rows.h"
#include "runtime/error.h"

namespace tutti {
namespace {

constexpr std::string_view kRole = "{role}", kContent = "{content}";

void append(TextDocument& document, const std::string& text, bool counts) {
  if (text.empty()) return;
  if (document.empty() || document.back().counts != counts)
    document.push_back({text, counts});
  else
    document.back().text += text;
}

std::string with_role(std::string_view turn, const std::string& role) {
  std::string text(turn);
  for (std::size_t at = text.find(kRole); at != std::string::npos; at = text.find(kRole, at + role.size()))
    text.replace(at, kRole.size(), role);
  return text;
}

}  // namespace

TextDocument DocumentFormat::read(std::string_view line) const {
  const JsonDocument json(line);
  TextDocument document;
  if (!messages.empty() && chat_template) {
    return chat_template->write(json.elements(messages), json.written("tools"));
  } else if (!messages.empty()) {
    const std::size_t content = turn.find(kContent);
    TUTTI_ASSERT(content != std::string::npos, turn);
    const std::string_view before = std::string_view(turn).substr(0, content);
    const std::string_view behind = std::string_view(turn).substr(content + kContent.size());
    for (const auto& [speaker, words] : json.messages(messages)) {
      append(document, with_role(before, speaker.role), false);
      append(document, words + with_role(behind, speaker.role), speaker.is_learned);
    }
  } else if (!prompt.empty()) {
    for (const std::string& member : prompt) {
      const std::string text = json.text(member);
      append(document, prompt.size() > 1 && !text.empty() ? text + '\n' : text, false);
    }
    append(document, json.text(response), true);
  } else {
    append(document, json.text(text), true);
  }
  return document;
}

void for_each_document(const MappedFile& file, const VisitDocument& visit) {
  const std::string_view all(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  if (!has_json_rows(file.path())) return visit(all, false, file.path());
  JsonRows rows(file.path(), all);
  while (const auto row = rows.next())
    visit(*row, true,
          file.path() + (rows.is_array() ? ": " + rows.place() : ':' + std::to_string(rows.number())));
}

}  // namespace tutti
