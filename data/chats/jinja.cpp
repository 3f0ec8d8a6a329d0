#include "data/chats/jinja.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>

#include "data/chats/jinja_functions.h"
#include "runtime/error.h"
#include "runtime/printable.h"

namespace tutti::jinja {
namespace {

constexpr int kMostCalls = 50;  // of macros within each other
constexpr std::size_t kBytesOfStep = 8;

// An error that has its line.
class PlacedError final : public UserError {
 public:
  using UserError::UserError;
};

enum class Flow { kNext, kBreak, kContinue };

class Renderer {
 public:
  Renderer(const Map& variables, Work& work) : work_(work) {
    scopes_.emplace_back();
    for (const auto& [name, value] : variables) scopes_.back()[name] = value;
  }

  MarkedText whole(const Node& program) {
    run(program);
    return std::move(out_);
  }

 private:
  using Scope = std::map<std::string, Value>;

  // Names the line in errors of what is done there.
  template <class Do>
  auto placed(const Node& node, const Do& act) {
    work_.use(1);
    try {
      return act();
    } catch (const PlacedError&) {
      throw;
    } catch (const UserError& error) {
      throw PlacedError("line " + std::to_string(node.line) + " of the chat template: " + error.message());
    }
  }

  Flow run(const Node& node) {
    if (node.op == Op::kBlock) {
      for (const Node& part : node.parts)
        if (const Flow flow = run(part); flow != Flow::kNext) return flow;
      return Flow::kNext;
    }
    return placed(node, [&] { return statement(node); });
  }

  Flow statement(const Node& node) {
    switch (node.op) {
      case Op::kText:
        write(*node.value.text());
        return Flow::kNext;
      case Op::kOutput:
        write(written(value(node.parts[0])));
        return Flow::kNext;
      case Op::kFor:
        return loop(node);
      case Op::kIf:
        return condition(node);
      case Op::kSet:
        assign(node, value(node.parts[0]));
        return Flow::kNext;
      case Op::kSetBlock:
        assign(node, captured(node.parts[0]));
        return Flow::kNext;
      case Op::kMacro:
        macros_[node.name] = &node;
        return Flow::kNext;
      case Op::kGeneration:
        return generation(node);
      case Op::kBreak:
        return Flow::kBreak;
      default:
        return Flow::kContinue;
    }
  }

  void write(const MarkedText& text) {
    work_.use(text.chars.size());
    out_.add(text);
  }

  MarkedText captured(const Node& body) {
    MarkedText before = std::exchange(out_, {});
    run(body);
    return std::exchange(out_, std::move(before));
  }

  Flow generation(const Node& node) {
    const std::size_t begin = out_.chars.size();
    const Flow flow = run(node.parts[0]);
    out_.marks.resize(out_.chars.size(), kTemplates);
    const std::string_view words = std::string_view(out_.marks).substr(begin);
    if (!is_silent_ && (words.find(kOthers) == words.npos || words.find(kAssistants) != words.npos))
      std::ranges::fill(out_.marks.begin() + static_cast<std::ptrdiff_t>(begin), out_.marks.end(),
                        kGenerated);
    return flow;
  }

  Flow condition(const Node& node) {
    std::size_t i = 0;
    for (; i + 1 < node.parts.size(); i += 2)
      if (value(node.parts[i]).is_true()) return run(node.parts[i + 1]);
    return i < node.parts.size() ? run(node.parts[i]) : Flow::kNext;
  }

  void assign(const Node& node, Value made) {
    if (node.names.size() == 1) {
      scopes_.back()[node.names[0]] = std::move(made);
      return;
    }
    Map* space = variable(node.names[0]).map();
    if (!space) throw UserError("'" + shown(node.names[0]) + "' is no namespace");
    Map changed = *space;
    std::erase_if(changed, [&](const auto& one) { return one.first == node.names[1]; });
    changed.emplace_back(node.names[1], made);
    std::swap(*space, changed);
    try {
      require_shallow(variable(node.names[0]), work_);
    } catch (const UserError&) {  // a namespace in itself would never be freed
      std::swap(*space, changed);
      throw;
    }
  }

  void set_names(const std::vector<std::string>& names, const Value& item) {
    if (names.size() == 1) {
      scopes_.back()[names[0]] = item;
      return;
    }
    if (!item.list() || item.list()->size() != names.size())
      refuse(std::to_string(names.size()) + " values a turn of the loop", item);
    for (std::size_t i = 0; i < names.size(); ++i) scopes_.back()[names[i]] = (*item.list())[i];
  }

  List filtered(const Node& node) {
    List all = elements(value(node.parts[0])), kept;
    work_.use(all.size());
    if (node.parts[1].op == Op::kConstant) return all;
    for (const Value& item : all) {
      scopes_.emplace_back();
      set_names(node.names, item);
      if (value(node.parts[1]).is_true()) kept.push_back(item);
      scopes_.pop_back();
    }
    return kept;
  }

  Flow loop(const Node& node) {
    const List all = filtered(node);
    if (all.empty()) return run(node.parts[3]);
    const auto neighbour = [&](std::size_t i) {
      return i < all.size() ? all[i] : Value(Undefined{"loop's item"});
    };
    const auto number = [](std::size_t i) { return static_cast<int64_t>(i); };
    Flow flow = Flow::kNext;
    ++loops_;
    for (std::size_t i = 0; i < all.size() && flow != Flow::kBreak; ++i) {
      work_.use(1);
      scopes_.emplace_back();
      scopes_.back()["loop"] = Map{{"index", number(i + 1)},
                                   {"index0", number(i)},
                                   {"revindex", number(all.size() - i)},
                                   {"revindex0", number(all.size() - i - 1)},
                                   {"first", i == 0},
                                   {"last", i + 1 == all.size()},
                                   {"length", number(all.size())},
                                   {"previtem", neighbour(i - 1)},
                                   {"nextitem", neighbour(i + 1)}};
      set_names(node.names, all[i]);
      const std::size_t begin = out_.chars.size();
      const int64_t before = turns_of_messages_;
      const bool is_message = all[i].member("role"), was_silent = is_silent_;
      if (is_message) is_silent_ = has_weight_0(all[i]);
      flow = run(node.parts[2]);
      is_silent_ = was_silent;
      if (is_message) ++turns_of_messages_;
      if (is_message || (loops_ == 1 && turns_of_messages_ == before)) mark_behind_words(begin);
      scopes_.pop_back();
    }
    --loops_;
    return Flow::kNext;
  }

  static bool has_weight_0(const Value& message) {
    const Value* weight = message.member("weight");
    return weight && !weight->is_none() && !weight->is_true();
  }

  // What stands behind an assistant's words belongs to them.
  void mark_behind_words(std::size_t begin) {
    if (out_.marks.empty()) return;
    out_.marks.resize(out_.chars.size(), kTemplates);
    bool is_assistants = false;
    for (std::size_t i = begin; i < out_.marks.size(); ++i) {
      if (out_.marks[i] != kTemplates)
        is_assistants = out_.marks[i] == kAssistants;
      else if (is_assistants)
        out_.marks[i] = kAssistants;
    }
  }

  Value variable(const std::string& name) const {
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope)
      if (const auto variable = scope->find(name); variable != scope->end()) return variable->second;
    return Undefined{name};
  }

  Value value(const Node& node) {
    Value made = placed(node, [&] { return evaluated(node); });
    if (const MarkedText* text = made.text()) work_.use(text->chars.size() / kBytesOfStep);
    return made;
  }

  Value evaluated(const Node& node) {
    switch (node.op) {
      case Op::kConstant:
        return node.value;
      case Op::kName:
        return variable(node.name);
      case Op::kList:
        return list(node);
      case Op::kMap:
        return map(node);
      case Op::kMember:
        return member(node);
      case Op::kItem: {
        const Value subject = value(node.parts[0]);
        return item(subject, value(node.parts[1]));
      }
      case Op::kSlice: {
        const Value subject = value(node.parts[0]);
        work_.use(size_of(subject));
        return slice(subject, value(node.parts[1]), value(node.parts[2]), value(node.parts[3]));
      }
      case Op::kNot:
        return !value(node.parts[0]).is_true();
      case Op::kNegative:
        return arithmetic("-", int64_t{0}, value(node.parts[0]));
      case Op::kBinary:
        return binary(node);
      case Op::kCondition:
        return value(node.parts[value(node.parts[0]).is_true() ? 1 : 2]);
      default:
        return called(node);
    }
  }

  static std::size_t size_of(const Value& value) {
    return value.text() ? value.text()->chars.size() : value.list() ? value.list()->size() : 1;
  }

  List list(const Node& node) {
    List all;
    for (const Node& part : node.parts) {
      all.push_back(value(part));
      require_shallow(all.back(), work_, /*depth=*/1);
    }
    return all;
  }

  Map map(const Node& node) {
    Map all;
    for (std::size_t i = 0; i < node.parts.size(); i += 2) {
      const Value key = value(node.parts[i]);
      if (!key.text()) refuse("a text as a key", key);
      all.emplace_back(key.text()->chars, value(node.parts[i + 1]));
      require_shallow(all.back().second, work_, /*depth=*/1);
    }
    return all;
  }

  Value member(const Node& node) {
    const Value subject = value(node.parts[0]);
    if (subject.is_undefined()) refuse("a value", subject);
    if (const Value* member = subject.member(node.name)) return *member;
    if (node.parts[0].op == Op::kName && node.parts[0].name == "loop")
      throw UserError("loop." + shown(node.name) + " is not known here");
    return Undefined{node.name};
  }

  // A function, macro, method, filter or test.
  Value called(const Node& node) {
    const std::size_t first = node.op == Op::kCall ? 0 : 1;
    const Value subject = first == 1 ? value(node.parts[0]) : Value(Undefined{node.name});
    List arguments;
    Map keywords;
    for (std::size_t i = 0; i < node.names.size(); ++i) {
      Value argument = value(node.parts[first + i]);
      if (node.names[i].empty())
        arguments.push_back(std::move(argument));
      else
        keywords.emplace_back(node.names[i], std::move(argument));
    }
    const Call call{node.name, subject, arguments, keywords, work_};
    work_.use(size_of(subject) / kBytesOfStep);
    switch (node.op) {
      case Op::kMethod:
        return call_method(call);
      case Op::kFilter:
        return call_filter(call);
      case Op::kTest:
        return call_test(call);
      default:
        return macros_.contains(node.name) ? macro(*macros_.at(node.name), call) : call_function(call);
    }
  }

  Value macro(const Node& node, const Call& call) {
    if (++calls_ > kMostCalls) throw UserError("macros that call each other too deeply");
    std::vector<Scope> before = std::exchange(scopes_, {scopes_.front()});
    scopes_.emplace_back();
    for (std::size_t i = 0; i < node.names.size(); ++i) {
      const Value* given = call.find(i, node.names[i]);
      scopes_.back()[node.names[i]] = given ? *given : value(node.parts[i + 1]);
    }
    MarkedText made = captured(node.parts[0]);
    scopes_ = std::move(before);
    --calls_;
    return made;
  }

  Value binary(const Node& node) {
    Value left = value(node.parts[0]);
    if (node.name == "and") return left.is_true() ? value(node.parts[1]) : left;
    if (node.name == "or") return left.is_true() ? left : value(node.parts[1]);
    const Value right = value(node.parts[1]);
    if (node.name == "==") return left == right;
    if (node.name == "!=") return !(left == right);
    if (node.name == "in") return contains(right, left);
    if (node.name == "not in") return !contains(right, left);
    if (node.name == "~") return joined(written(left), written(right));
    if (node.name == "+" && left.text() && right.text()) return joined(*left.text(), *right.text());
    if (node.name == "+" && left.list() && right.list()) {
      List both = *left.list();
      both.insert(both.end(), right.list()->begin(), right.list()->end());
      work_.use(both.size());
      return both;
    }
    return arithmetic(node.name, left, right);
  }

  static MarkedText joined(MarkedText left, const MarkedText& right) {
    left.add(right);
    return left;
  }

  // Of whole numbers, and comparisons of texts.
  static Value arithmetic(const std::string& name, const Value& left, const Value& right) {
    if (left.text() && right.text() && (name[0] == '<' || name[0] == '>')) {
      const int order = left.text()->chars.compare(right.text()->chars);
      return arithmetic(name, int64_t{order}, int64_t{0});
    }
    if (!left.integer()) refuse("a whole number before '" + name + "'", left);
    if (!right.integer()) refuse("a whole number behind '" + name + "'", right);
    const int64_t a = *left.integer(), b = *right.integer();
    if (name == "<") return a < b;
    if (name == "<=") return a <= b;
    if (name == ">") return a > b;
    if (name == ">=") return a >= b;
    int64_t result = 0;
    bool overflows = false;
    if (name == "+") {
      overflows = __builtin_add_overflow(a, b, &result);
    } else if (name == "-") {
      overflows = __builtin_sub_overflow(a, b, &result);
    } else if (name == "*") {
      overflows = __builtin_mul_overflow(a, b, &result);
    } else if ((name == "%" || name == "//") && b > 0) {
      result = name == "%" ? (a % b + b) % b : (a - (a % b + b) % b) / b;
    } else {
      throw UserError("'" + name + "' of such numbers is not known here");
    }
    if (overflows) throw UserError("a number that is too large");
    return result;
  }

  Work& work_;
  MarkedText out_;
  std::vector<Scope> scopes_;
  std::map<std::string, const Node*> macros_;
  int loops_ = 0, calls_ = 0;
  int64_t turns_of_messages_ = 0;
  bool is_silent_ = false;  // in the turn of a message that does not count, whether it has words or not
};

}  // namespace

MarkedText render(const Node& program, const Map& variables, Work& work) {
  return Renderer(variables, work).whole(program);
}

}  // namespace tutti::jinja
