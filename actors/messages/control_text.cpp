#include "actors/messages/control_text.h"

#include <algorithm>

namespace tutti {
namespace {

constexpr char kSeparator = '\x1f';

}  // namespace

ControlText ControlText::parse(const std::string& text) {
  ControlText parsed({});
  std::size_t begin = 0;
  for (std::size_t end; (end = text.find(kSeparator, begin)) != std::string::npos; begin = end + 1)
    parsed.fields_.push_back(text.substr(begin, end - begin));
  parsed.fields_.push_back(text.substr(begin));
  return parsed;
}

std::string ControlText::text() const {
  std::string joined;
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    std::string field = fields_[i];
    std::ranges::replace(field, kSeparator, '?');
    joined += (i == 0 ? "" : std::string(1, kSeparator)) + field;
  }
  return joined;
}

std::string end_order(const std::string& verb, const RankEnd& end) {
  return ControlText({verb, std::to_string(static_cast<int>(end.kind)), end.reason}).text();
}

RankEnd parse_end(const ControlText& text) {
  const int kind = std::stoi(text.field(1));
  TUTTI_ASSERT(kind >= 0 && kind <= static_cast<int>(EndKind::kSkipping), text.text());
  return {static_cast<EndKind>(kind), text.field(2)};
}

std::string durable_text(const Durable& part) {
  const CheckpointManifest manifest{{part.file}, part.state};
  return ControlText({"durable", part.name, part.error, part.last ? "last" : "", manifest.to_json()}).text();
}

Durable parse_durable(const ControlText& text) {
  CheckpointManifest manifest = CheckpointManifest::from_json(text.field(4));
  return {text.field(1), text.field(2), std::move(manifest.files.at(0)), std::move(manifest.state),
          text.field(3) == "last"};
}

}  // namespace tutti
