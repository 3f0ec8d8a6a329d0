#include "data/chats/jinja_functions.h"

#include <algorithm>
#include <map>

#include "data/chats/jinja_text.h"
#include "runtime/error.h"
#include "runtime/printable.h"

namespace tutti::jinja {
namespace {

constexpr int kMostNesting = 100;  // more than JSON has (io/json/json_text.h)
constexpr int64_t kLongestRange = 100'000, kMostIndent = 16;

using Function = Value (*)(const Call& call);
using Functions = std::map<std::string, Function, std::less<>>;

const List& list_of(const Value& value) {
  if (!value.list()) refuse("a list", value);
  return *value.list();
}

int64_t integer_of(const Value& value) {
  if (!value.integer()) refuse("a whole number", value);
  return *value.integer();
}

Value length(const Call& call) {
  const Value& value = call.subject;
  if (value.is_undefined()) return int64_t{0};
  if (const MarkedText* text = value.text()) return std::ssize(characters(text->chars));
  return std::ssize(elements(value));
}

Value range(const Call& call) {
  const std::size_t count = call.arguments.size();
  const int64_t begin = count > 1 ? integer_of(call.at(0)) : 0, end = integer_of(call.at(count > 1 ? 1 : 0));
  const int64_t step = count > 2 ? integer_of(call.at(2)) : 1;
  if (step == 0) throw UserError("range with steps of 0");
  List all;
  for (int64_t i = begin; step > 0 ? i < end : i > end; i += step) {
    if (std::ssize(all) == kLongestRange) throw UserError("a range that is too long");
    all.emplace_back(i);
  }
  call.work.use(all.size());
  return all;
}

Value namespace_of(const Call& call) {
  const Value made = Map(call.keywords);
  require_shallow(made, call.work);
  return made;
}

Value raise_exception(const Call& call) {
  throw UserError("the chat template says: " + shown(written(call.at(0)).chars));
}

const Functions& functions() {
  static const Functions all = {{"dict", namespace_of},
                                {"namespace", namespace_of},
                                {"raise_exception", raise_exception},
                                {"range", range}};
  return all;
}

Value items_of(const Value& value) {
  if (!value.map()) refuse("a map", value);
  List pairs;
  for (const auto& [key, member] : *value.map()) pairs.emplace_back(List{Value::text(key), member});
  return pairs;
}

Value joined(const Call& call) {
  const Value* between = call.find(0, "d");
  if (call.find(1, "attribute")) throw UserError("join by an attribute is not known here");
  MarkedText out;
  bool is_first = true;
  for (const Value& element : elements(call.subject)) {
    if (between && !is_first) out.add(written(*between));
    out.add(written(element));
    is_first = false;
    call.work.use(out.chars.size() / 64);
  }
  return out;
}

Value or_default(const Call& call) {
  const Value* also_false = call.find(1, "boolean");
  const bool is_absent =
      call.subject.is_undefined() || (also_false && also_false->is_true() && !call.subject.is_true());
  if (!is_absent) return call.subject;
  const Value* other = call.find(0, "default_value");
  return other ? *other : Value::text("");
}

// transformers' filter, whose order of arguments is not jinja2's.
Value to_json(const Call& call) {
  const Value* is_ascii = call.find(0, "ensure_ascii");
  const Value* indent = call.find(1, "indent");
  if (call.arguments.size() > 2) throw UserError("tojson's arguments behind indent are not known here");
  for (const auto& [name, value] : call.keywords)
    if (name != "indent" && name != "ensure_ascii")
      throw UserError("tojson's argument '" + shown(name) + "' is not known here");
  const bool is_given = indent && !indent->is_none();
  const int64_t blanks = is_given ? integer_of(*indent) : -1;
  if (blanks > kMostIndent) throw UserError("tojson with an indent above " + std::to_string(kMostIndent));
  return as_json(call.subject, static_cast<int>(blanks), is_ascii && is_ascii->is_true());
}

Value to_integer(const Call& call) {
  if (call.subject.integer()) return call.subject;
  if (const bool* truth = std::get_if<bool>(&call.subject)) return int64_t{*truth};
  const std::string digits = call.subject.text() ? call.subject.text()->chars : "";
  constexpr std::size_t kMostDigits = 18;
  if (digits.empty() || digits.size() > kMostDigits ||
      digits.find_first_not_of("0123456789") != std::string::npos)
    refuse("digits", call.subject);
  return static_cast<int64_t>(std::stoll(digits));
}

Value first_of(const Call& call) {
  const List all = elements(call.subject);
  return all.empty() ? Value(Undefined{"first"}) : all.front();
}

Value last_of(const Call& call) {
  const List all = elements(call.subject);
  return all.empty() ? Value(Undefined{"last"}) : all.back();
}

Value reversed(const Call& call) { return slice(call.subject, nullptr, nullptr, int64_t{-1}); }

// The member of an attribute, "a.b" of several.
Value attribute_of(const Value& value, std::string_view path) {
  const std::size_t dot = path.find('.');
  const Value* member = value.member(path.substr(0, dot));
  if (!member) return Undefined{std::string(path)};
  return dot == std::string_view::npos ? *member : attribute_of(*member, path.substr(dot + 1));
}

// select, reject, selectattr and rejectattr: by a test, or by what is true.
Value chosen(const Call& call, bool by_attribute, bool keeps) {
  const std::size_t test = by_attribute ? 1 : 0;
  List kept;
  for (const Value& element : elements(call.subject)) {
    const Value value = by_attribute ? attribute_of(element, call.text(0).chars) : element;
    bool holds = value.is_true();
    if (call.find(test, "")) {
      const List rest(call.arguments.begin() + static_cast<std::ptrdiff_t>(test) + 1, call.arguments.end());
      holds = call_test({call.text(test).chars, value, rest, {}, call.work});
    }
    if (holds == keeps) kept.push_back(element);
    call.work.use(1);
  }
  return kept;
}

Value mapped(const Call& call) {
  List all;
  const Value* attribute = call.find(SIZE_MAX, "attribute");
  for (const Value& element : elements(call.subject)) {
    call.work.use(1);
    if (attribute) {
      if (!attribute->text()) refuse("a text", *attribute);
      all.push_back(attribute_of(element, attribute->text()->chars));
    } else {
      const List rest(call.arguments.begin() + (call.arguments.empty() ? 0 : 1), call.arguments.end());
      all.push_back(call_filter({call.text(0).chars, element, rest, {}, call.work}));
    }
  }
  return all;
}

// Filters that are the methods of texts too.
Value by_method(const Call& call) {
  const Value subject =
      call.name == "trim" || call.name == "replace" ? Value(written(call.subject)) : call.subject;
  const std::string name = call.name == "trim" ? "strip" : call.name;
  return text_method({name, subject, call.arguments, call.keywords, call.work});
}

Value same(const Call& call) { return call.subject; }

const Functions& filters() {
  static const Functions all = {
      {"capitalize", by_method},
      {"count", length},
      {"d", or_default},
      {"default", or_default},
      {"first", first_of},
      {"int", to_integer},
      {"items",
       [](const Call& call) { return call.subject.is_undefined() ? Value(List()) : items_of(call.subject); }},
      {"join", joined},
      {"last", last_of},
      {"length", length},
      {"list", [](const Call& call) { return Value(elements(call.subject)); }},
      {"lower", by_method},
      {"map", mapped},
      {"reject", [](const Call& call) { return chosen(call, false, false); }},
      {"rejectattr", [](const Call& call) { return chosen(call, true, false); }},
      {"replace", by_method},
      {"reverse", reversed},
      {"safe", same},
      {"select", [](const Call& call) { return chosen(call, false, true); }},
      {"selectattr", [](const Call& call) { return chosen(call, true, true); }},
      {"string", [](const Call& call) { return Value(written(call.subject)); }},
      {"tojson", to_json},
      {"trim", by_method},
      {"upper", by_method}};
  return all;
}

using Test = bool (*)(const Call& call);

bool is_number(const Value& value) {
  return value.integer() || std::holds_alternative<double>(value) || std::holds_alternative<bool>(value);
}

const std::map<std::string, Test, std::less<>>& tests() {
  static const std::map<std::string, Test, std::less<>> all = {
      {"==", [](const Call& call) { return call.subject == call.at(0); }},
      {"boolean", [](const Call& call) { return std::holds_alternative<bool>(call.subject); }},
      {"defined", [](const Call& call) { return !call.subject.is_undefined(); }},
      {"divisibleby",
       [](const Call& call) {
         const int64_t by = integer_of(call.at(0));
         if (by == 0) throw UserError("divisibleby 0");
         return integer_of(call.subject) % by == 0;
       }},
      {"eq", [](const Call& call) { return call.subject == call.at(0); }},
      {"equalto", [](const Call& call) { return call.subject == call.at(0); }},
      {"even", [](const Call& call) { return integer_of(call.subject) % 2 == 0; }},
      {"false",
       [](const Call& call) {
         return call.subject == Value(false) && std::holds_alternative<bool>(call.subject);
       }},
      {"in", [](const Call& call) { return contains(call.at(0), call.subject); }},
      {"integer", [](const Call& call) { return call.subject.integer() != nullptr; }},
      {"iterable",
       [](const Call& call) {
         return call.subject.text() || call.subject.list() || call.subject.map() ||
                call.subject.is_undefined();
       }},
      {"mapping", [](const Call& call) { return call.subject.map() != nullptr; }},
      {"ne", [](const Call& call) { return !(call.subject == call.at(0)); }},
      {"none", [](const Call& call) { return call.subject.is_none(); }},
      {"number", [](const Call& call) { return is_number(call.subject); }},
      {"odd", [](const Call& call) { return integer_of(call.subject) % 2 != 0; }},
      {"sequence",
       [](const Call& call) {
         return call.subject.text() || call.subject.list() || call.subject.map() ||
                call.subject.is_undefined();
       }},
      {"string", [](const Call& call) { return call.subject.text() != nullptr; }},
      {"true",
       [](const Call& call) {
         return call.subject == Value(true) && std::holds_alternative<bool>(call.subject);
       }},
      {"undefined", [](const Call& call) { return call.subject.is_undefined(); }}};
  return all;
}

template <class All>
auto known(const All& all, const char* what, const std::string& name) {
  const auto function = all.find(name);
  if (function == all.end()) throw UserError(std::string(what) + " '" + shown(name) + "' is not known here");
  return function->second;
}

}  // namespace

void require_shallow(const Value& value, Work& work, int depth) {
  if (depth > kMostNesting) throw UserError("lists and maps that lie too deep in each other");
  work.use(1);
  if (const List* list = value.list())
    for (const Value& element : *list) require_shallow(element, work, depth + 1);
  if (const Map* map = value.map())
    for (const auto& [key, member] : *map) require_shallow(member, work, depth + 1);
}

Value call_function(const Call& call) { return known(functions(), "the function", call.name)(call); }
Value call_filter(const Call& call) { return known(filters(), "the filter", call.name)(call); }
bool call_test(const Call& call) { return known(tests(), "the test", call.name)(call); }
bool is_function(const std::string& name) { return functions().contains(name); }

Value call_method(const Call& call) {
  if (call.subject.text()) return text_method(call);
  if (call.subject.map()) {
    if (call.name == "items") return items_of(call.subject);
    if (call.name == "keys") return elements(call.subject);
    if (call.name == "values") {
      List values;
      for (const auto& [key, value] : *call.subject.map()) values.push_back(value);
      return values;
    }
    if (call.name == "get") {
      const Value* member = call.subject.member(call.text(0).chars);
      const Value* other = call.find(1, "default");
      return member ? *member : other ? *other : Value(nullptr);
    }
  }
  if (call.subject.is_undefined()) refuse("a value", call.subject);
  throw UserError("the method '" + shown(call.name) + "' of " + call.subject.type() + " is not known here");
}

bool contains(const Value& container, const Value& value) {
  if (const MarkedText* text = container.text()) {
    if (!value.text()) refuse("a text", value);
    return text->chars.find(value.text()->chars) != std::string::npos;
  }
  const List all = container.is_undefined() ? List() : elements(container);
  return std::ranges::any_of(all, [&](const Value& one) { return one == value; });
}

Value slice(const Value& value, const Value& from, const Value& to, const Value& step) {
  const List all = value.text() ? elements(value) : list_of(value);
  const int64_t by = step.is_none() ? 1 : integer_of(step), size = std::ssize(all);
  if (by == 0) throw UserError("a slice with steps of 0");
  const auto place = [&](const Value& bound, int64_t usual) {
    if (bound.is_none()) return usual;
    const int64_t given = integer_of(bound);
    const int64_t from_begin = given < 0 ? given + size : given;
    return std::clamp(from_begin, by > 0 ? int64_t{0} : int64_t{-1}, by > 0 ? size : size - 1);
  };
  List kept;
  const int64_t begin = place(from, by > 0 ? 0 : size - 1), end = place(to, by > 0 ? size : -1);
  for (int64_t i = begin; by > 0 ? i < end : i > end; i += by)
    kept.push_back(all[static_cast<std::size_t>(i)]);
  if (!value.text()) return kept;
  MarkedText out;
  for (const Value& part : kept) out.add(*part.text());
  return out;
}

Value item(const Value& value, const Value& index) {
  if (value.is_undefined()) refuse("a value", value);
  if (const MarkedText* key = index.text()) {
    const Value* member = value.member(key->chars);
    return member ? *member : Value(Undefined{key->chars});
  }
  if (const List* list = value.list(); list && index.integer()) {
    const int64_t place = *index.integer() + (*index.integer() < 0 ? std::ssize(*list) : 0);
    if (place >= 0 && place < std::ssize(*list)) return (*list)[static_cast<std::size_t>(place)];
  } else if (value.text() && index.integer()) {
    const int64_t place = *index.integer();
    const Value element = slice(value, place, place == -1 ? Value(nullptr) : Value(place + 1), nullptr);
    if (!element.text()->chars.empty()) return element;
  }
  return Undefined{"an index"};
}

List elements(const Value& value) {
  if (value.is_undefined()) return {};
  if (value.list()) return *value.list();
  List all;
  if (const Map* map = value.map()) {
    for (const auto& [key, member] : *map) all.push_back(Value::text(key));
    return all;
  }
  if (!value.text()) refuse("a list", value);
  std::size_t begin = 0;
  for (const std::size_t end : characters(value.text()->chars)) {
    all.emplace_back(value.text()->part(begin, end));
    begin = end;
  }
  return all;
}

}  // namespace tutti::jinja
