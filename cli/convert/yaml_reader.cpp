#include "cli/convert/yaml_reader.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "recipe/dotted_path.h"
#include "runtime/error.h"
#include "runtime/regular_file.h"
#include "runtime/text.h"

namespace tutti {
namespace {

constexpr int kMostDepth = 64;
constexpr int64_t kMostValues = 100'000;  // with those that aliases and references stand for

std::string too_many_values(const std::string& what) {
  return "the file has more than " + grouped(kMostValues) + " values, with those that " + what + " stand for";
}

template <class Number>
std::optional<Number> number_of(const std::string& text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool all = error == std::errc() && end == text.data() + text.size();
  return all ? std::optional(number) : std::nullopt;
}

// YAML 1.1, as PyYAML and OmegaConf read it; yet 1e-5 is a number, which for PyYAML is a text.
Setting::Value plain_value(const std::string& text) {
  static const std::set<std::string, std::less<>> yes = {"true", "True", "TRUE", "yes", "Yes",
                                                         "YES",  "on",   "On",   "ON"},
                                                  no = {"false", "False", "FALSE", "no", "No",
                                                        "NO",    "off",   "Off",   "OFF"};
  if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL") return {};
  if (yes.contains(text)) return true;
  if (no.contains(text)) return false;
  if (const auto integer = number_of<int64_t>(text)) return *integer;
  if (const auto number = number_of<double>(text); number && std::isfinite(*number)) return *number;
  return text;
}

// Converts yaml-cpp's nodes to settings.
class Reader {
 public:
  Reader(std::string file, std::shared_ptr<const std::string> source)
      : file_(std::move(file)), source_(std::move(source)) {}

  Setting read(const YAML::Node& node, const std::string& path, int depth = 0) const {
    const Position at = position(node.Mark());
    if (++values_ > kMostValues) throw UserError(at, too_many_values("aliases"));
    if (depth > kMostDepth) throw UserError(at, "nested too deeply");
    return Setting(value(node, path, depth), path, at);
  }

  Position position(const YAML::Mark& mark) const {
    return {file_, mark.line + 1, {mark.column + 1, 1}, {}, source_};
  }

 private:
  Setting::Value value(const YAML::Node& node, const std::string& path, int depth) const {
    if (node.IsScalar()) return node.Tag() == "!" ? node.Scalar() : plain_value(node.Scalar());
    if (node.IsSequence()) {
      Setting::Array items;
      for (const auto& item : node)
        items.push_back(read(item, path_below(path, std::to_string(items.size())), depth + 1));
      return items;
    }
    if (!node.IsMap()) return {};
    Setting::Table members;
    std::vector<YAML::Node> merged;
    for (const auto& member : node) {
      if (!member.first.IsScalar()) throw UserError(position(member.first.Mark()), "expected a name");
      const std::string& name = member.first.Scalar();
      if (name == "<<")
        merged.push_back(member.second);
      else
        members.emplace_back(name, read(member.second, path_below(path, name), depth + 1));
    }
    for (const YAML::Node& node : merged) merge(members, node, path, depth + 1);
    return members;
  }

  // YAML's <<: the members of another map, or of several, that the map does not have itself.
  void merge(Setting::Table& members, const YAML::Node& other, const std::string& path, int depth) const {
    if (other.IsSequence())
      for (const auto& node : other) merge(members, node, path, depth);
    if (!other.IsMap()) return;
    Setting more = read(other, path, depth);
    for (auto& member : more.table())
      if (std::ranges::find(members, member.first, &Setting::Table::value_type::first) == members.end())
        members.push_back(std::move(member));
  }

  std::string file_;
  std::shared_ptr<const std::string> source_;
  mutable int64_t values_ = 0;  // read so far
};

// The place of a reference in a text, and of the name in it: ${name}
struct Reference {
  std::size_t begin, end;
  std::string_view name;

  static std::optional<Reference> next(std::string_view text, std::size_t from) {
    constexpr std::string_view kOpen = "${";
    for (std::size_t at = from; (at = text.find(kOpen, at)) != text.npos; at += kOpen.size()) {
      const std::size_t first = at + kOpen.size(),
                        end = std::min(text.find_first_not_of(kNameCharacters, first), text.size());
      if (end > first && end < text.size() && text[end] == '}')
        return Reference{at, end + 1, text.substr(first, end - first)};
    }
    return std::nullopt;
  }

  static constexpr std::string_view kNameCharacters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.";
};

// Replaces OmegaConf's references to values of the file.
class References {
 public:
  explicit References(const Setting& root) : root_(root) {}

  Setting replaced(const Setting& setting, int depth = 0) const {
    if (++values_ > kMostValues) setting.fail(too_many_values("references"));
    Setting out = setting;
    if (out.is_text()) out.value = value_of_text(setting, depth);
    if (out.is_array())
      for (auto& item : std::get<Setting::Array>(out.value)) item = replaced(item, depth);
    if (out.is_table())
      for (auto& [name, member] : out.table()) member = replaced(member, depth);
    return out;
  }

 private:
  // A text that is one reference becomes the value; within a text, references become texts.
  Setting::Value value_of_text(const Setting& setting, int depth) const {
    const std::string& text = setting.text();
    if (depth > kMostDepth) setting.fail("the references go in a circle");
    std::string out;
    std::size_t rest = 0;
    for (auto reference = Reference::next(text, 0); reference; reference = Reference::next(text, rest)) {
      const Setting* there = named(std::string(reference->name));
      if (there && reference->begin == 0 && reference->end == text.size())
        return replaced(*there, depth + 1).value;
      out.append(text, rest, reference->begin - rest);
      const Setting value =
          there ? replaced(*there, depth + 1)
                : Setting(text.substr(reference->begin, reference->end - reference->begin), "", {});
      if (!value.is_none()) out += value.is_text() ? value.text() : value.toml();
      if (out.size() > kMostTextBytes) setting.fail("the references in it stand for too long a text");
      rest = reference->end;
    }
    return out.append(text, rest);
  }

  // The value in the file, or below `parameters` as MosaicML's platform has them; null if there is none.
  const Setting* named(const std::string& path) const {
    const Setting* setting = setting_at(root_, path);
    const Setting* parameters = root_.find("parameters");
    return setting || !parameters ? setting : setting_at(*parameters, path);
  }

  const Setting& root_;
  mutable int64_t values_ = 0;  // replaced so far
};

}  // namespace

Setting parse_yaml(const std::string& yaml, const std::string& file) {
  const Reader reader(file, std::make_shared<const std::string>(yaml));
  try {
    const Setting read = reader.read(YAML::Load(yaml), "");
    if (!read.is_table()) throw UserError({file}, "expected keys and values in YAML");
    return References(read).replaced(read);
  } catch (const YAML::Exception& error) {
    throw UserError(reader.position(error.mark), "this is not YAML: " + error.msg);
  }
}

Setting read_yaml(const std::string& path) {
  const RegularFile file(path, kMostTextBytes);
  if (!file.problem().empty()) throw UserError({path}, "cannot be read: " + file.problem());
  return parse_yaml(file.text(), path);
}

}  // namespace tutti
