#include <algorithm>
#include <array>
#include <charconv>

#include "data/chats/jinja_lexer.h"
#include "data/chats/jinja_syntax.h"
#include "runtime/error.h"
#include "runtime/printable.h"

namespace tutti::jinja {
namespace {

constexpr int kMostDepth = 64;  // of tags and of expressions within each other
using Kind = Word::Kind;

// The words of a tag, one after the other.
class WordReader {
 public:
  explicit WordReader(const Piece& piece) : words_(piece.words) {}

  // True if the next word is this name or operator, which is then passed.
  bool passes(std::string_view text) {
    if (!is(text)) return false;
    ++at_;
    return true;
  }
  void expect(std::string_view text) {
    if (!passes(text)) fail("expected '" + std::string(text) + "', not " + shown_word());
  }
  std::string name() {
    if (words_[at_].kind != Kind::kName) fail("expected a name, not " + shown_word());
    return words_[at_++].text;
  }
  bool is_at_end() const { return words_[at_].kind == Kind::kEnd; }
  void expect_end() const {
    if (!is_at_end()) fail("not known here: " + shown_word());
  }
  [[noreturn]] void fail(const std::string& what) const { fail_at(words_[at_].line, what); }

  Node node(Op op, std::string name = "") const {
    return {.op = op, .line = words_[at_].line, .name = std::move(name)};
  }

 protected:
  bool is(std::string_view text) const {
    return (words_[at_].kind == Kind::kName || words_[at_].kind == Kind::kOperator) &&
           words_[at_].text == text;
  }
  std::string shown_word() const {
    return is_at_end() ? "the end of the tag" : '\'' + shown(words_[at_].text) + '\'';
  }

  const std::vector<Word>& words_;
  std::size_t at_ = 0;
};

class ExpressionParser : public WordReader {
 public:
  using WordReader::WordReader;

  Node expression() {
    if (++depth_ > kMostDepth) fail("an expression that is nested too deeply");
    Node value = either();
    if (passes("if")) {
      Node condition = node(Op::kCondition);
      condition.parts.push_back(either());
      condition.parts.push_back(std::move(value));
      condition.parts.push_back(passes("else") ? expression() : constant(Undefined{"else"}));
      value = std::move(condition);
    }
    --depth_;
    return value;
  }

  // As `for` has it: without a condition of "if".
  Node without_condition() { return either(); }

  // "(a, b=1)" behind a name; the subject, if any, is part 0.
  void read_arguments(Node& call) {
    expect("(");
    while (!passes(")")) {
      const bool is_keyword = words_[at_].kind == Kind::kName && words_[at_ + 1].text == "=" &&
                              words_[at_ + 1].kind == Kind::kOperator;
      call.names.push_back(is_keyword ? name() : "");
      if (is_keyword) expect("=");
      call.parts.push_back(expression());
      if (!is(")")) expect(",");
    }
  }

 private:
  Node constant(Value value) const {
    Node made = node(Op::kConstant);
    made.value = std::move(value);
    return made;
  }

  template <std::size_t kCount>
  Node binary(const std::array<std::string_view, kCount>& operators, Node (ExpressionParser::*below)()) {
    Node left = (this->*below)();
    for (;;) {
      const auto operator_place = std::ranges::find_if(operators, [this](auto one) { return is(one); });
      if (operator_place == operators.end()) return left;
      Node both = node(Op::kBinary, std::string(*operator_place));
      ++at_;
      both.parts.push_back(std::move(left));
      both.parts.push_back((this->*below)());
      left = std::move(both);
      if (++operators_ > kMostOperators) fail("an expression that is too long");
    }
  }

  Node either() { return binary(std::array<std::string_view, 1>{"or"}, &ExpressionParser::both); }
  Node both() { return binary(std::array<std::string_view, 1>{"and"}, &ExpressionParser::negated); }

  Node negated() {
    if (!is("not")) return comparison();
    Node no = node(Op::kNot);
    ++at_;
    if (++depth_ > kMostDepth) fail("an expression that is nested too deeply");
    no.parts.push_back(negated());
    --depth_;
    return no;
  }

  Node comparison() {
    Node left = sum();
    for (;;) {
      const bool is_not_in = is("not") && words_[at_ + 1].text == "in";
      constexpr std::array<std::string_view, 7> kAll = {"==", "!=", "<", "<=", ">", ">=", "in"};
      const auto operator_place = std::ranges::find_if(kAll, [this](auto one) { return is(one); });
      if (operator_place == kAll.end() && !is_not_in) return left;
      Node compared = node(Op::kBinary, is_not_in ? "not in" : std::string(*operator_place));
      at_ += is_not_in ? 2 : 1;
      compared.parts.push_back(std::move(left));
      compared.parts.push_back(sum());
      if (is("==") || is("<") || is(">") || is("<=") || is(">=") || is("!="))
        fail("comparisons behind each other");
      left = std::move(compared);
    }
  }

  Node sum() { return binary(std::array<std::string_view, 2>{"+", "-"}, &ExpressionParser::joined); }
  Node joined() { return binary(std::array<std::string_view, 1>{"~"}, &ExpressionParser::product); }
  Node product() {
    return binary(std::array<std::string_view, 4>{"*", "/", "//", "%"}, &ExpressionParser::filtered);
  }

  Node filtered() {
    Node value = is("-") ? negative() : with_members(primary());
    for (;;) {
      if (passes("|")) {
        value = with_subject(node(Op::kFilter), std::move(value));
        value.name = name();
        if (is("(")) read_arguments(value);
      } else if (passes("is")) {
        value = test(std::move(value));
      } else {
        return value;
      }
      if (++operators_ > kMostOperators) fail("an expression that is too long");
    }
  }

  Node negative() {
    Node made = node(Op::kNegative);
    ++at_;
    made.parts.push_back(with_members(primary()));
    return made;
  }

  Node test(Node subject) {
    const bool is_negated = passes("not");
    Node made = with_subject(node(Op::kTest), std::move(subject));
    made.name = name();
    const Word& next = words_[at_];
    const bool has_value =
        next.kind == Kind::kText || next.kind == Kind::kInteger || next.kind == Kind::kFloat ||
        (next.kind == Kind::kName && next.text != "and" && next.text != "or" && next.text != "else" &&
         next.text != "if" && next.text != "is" && next.text != "in" && next.text != "not");
    if (is("(")) {
      read_arguments(made);
    } else if (has_value) {
      made.names.emplace_back();
      made.parts.push_back(with_members(primary()));
    }
    if (!is_negated) return made;
    return with_subject(node(Op::kNot), std::move(made));
  }

  static Node with_subject(Node made, Node subject) {
    made.parts.push_back(std::move(subject));
    return made;
  }

  // ".name", ".name(...)", "[...]" behind a value.
  Node with_members(Node value) {
    for (;;) {
      if (++operators_ > kMostOperators) fail("an expression that is too long");
      if (passes(".")) {
        value = with_subject(node(Op::kMember), std::move(value));
        value.name = name();
        if (!is("(")) continue;
        value.op = Op::kMethod;
        read_arguments(value);
      } else if (passes("[")) {
        value = item(std::move(value));
      } else if (is("(")) {
        if (value.op != Op::kName) fail("a call of something that has no name");
        value.op = Op::kCall;
        read_arguments(value);
      } else {
        return value;
      }
    }
  }

  Node item(Node value) {
    Node made = with_subject(node(Op::kItem), std::move(value));
    const auto bound = [this] { return is(":") || is("]") ? constant(nullptr) : expression(); };
    made.parts.push_back(bound());
    if (is(":")) {
      made.op = Op::kSlice;
      for (int i = 0; i < 2; ++i) made.parts.push_back(passes(":") ? bound() : constant(nullptr));
    }
    expect("]");
    return made;
  }

  Node primary() {
    const Word word = words_[at_];
    switch (word.kind) {
      case Kind::kText: {
        std::string chars;
        for (; words_[at_].kind == Kind::kText; ++at_) chars += words_[at_].text;
        return constant(Value::text(chars));
      }
      case Kind::kInteger: {
        int64_t number = 0;
        if (std::from_chars(word.text.data(), word.text.data() + word.text.size(), number).ec != std::errc())
          fail("a number that is too large");
        ++at_;
        return constant(number);
      }
      case Kind::kFloat:
        ++at_;
        return constant(std::stod(word.text));
      case Kind::kName:
        return named();
      default:
        return bracketed();
    }
  }

  Node named() {
    const std::string text = words_[at_].text;
    Node made = node(Op::kName, text);
    ++at_;
    if (text == "true" || text == "True") return constant(true);
    if (text == "false" || text == "False") return constant(false);
    if (text == "none" || text == "None") return constant(nullptr);
    return made;
  }

  Node bracketed() {
    if (passes("(")) {
      Node value = is(")") ? node(Op::kList) : expression();
      if (is(",")) {  // a tuple
        value = with_subject(node(Op::kList), std::move(value));
        while (passes(","))
          if (!is(")")) value.parts.push_back(expression());
      }
      expect(")");
      return value;
    }
    if (passes("[")) {
      Node list = node(Op::kList);
      while (!passes("]")) {
        list.parts.push_back(expression());
        if (!is("]")) expect(",");
      }
      return list;
    }
    if (!passes("{")) fail("expected a value, not " + shown_word());
    Node map = node(Op::kMap);
    while (!passes("}")) {
      map.parts.push_back(expression());
      expect(":");
      map.parts.push_back(expression());
      if (!is("}")) expect(",");
    }
    return map;
  }

  static constexpr int kMostOperators = 500;  // of a tag; their nodes lie in each other

  int depth_ = 0, operators_ = 0;
};

// The statements of a template.
class TemplateParser {
 public:
  explicit TemplateParser(std::string_view text) : pieces_(pieces_of(text)) {}

  Node whole() {
    Node all = body();
    if (at_ < pieces_.size()) fail_at(pieces_[at_].line, "a tag without its beginning: " + tag());
    return all;
  }

 private:
  const std::string& tag() const { return pieces_[at_].words[0].text; }

  // Up to a tag that ends a body, which is not passed.
  Node body() {
    if (++depth_ > kMostDepth) fail_at(pieces_[at_ - 1].line, "tags that are nested too deeply");
    Node block{.op = Op::kBlock};
    while (at_ < pieces_.size()) {
      const Piece& piece = pieces_[at_];
      if (piece.part == Part::kStatement && (tag().starts_with("end") || tag() == "else" || tag() == "elif"))
        break;
      ++at_;
      if (piece.part == Part::kText) {
        block.parts.push_back({.op = Op::kText, .line = piece.line, .value = Value::text(piece.text)});
      } else if (piece.part == Part::kOutput) {
        ExpressionParser words(piece);
        Node output = words.node(Op::kOutput);
        output.parts.push_back(words.expression());
        words.expect_end();
        block.parts.push_back(std::move(output));
      } else {
        block.parts.push_back(statement(piece));
      }
    }
    --depth_;
    return block;
  }

  // Passes a tag of this name, which ends a body.
  void pass_end(std::string_view name, int from) {
    if (at_ == pieces_.size()) fail_at(from, "a tag without its " + std::string(name));
    if (tag() != name)
      fail_at(pieces_[at_].line, "expected " + std::string(name) + ", not '" + shown(tag()) + "'");
    ExpressionParser words(pieces_[at_++]);
    words.name();
    words.expect_end();
  }

  Node statement(const Piece& piece) {
    ExpressionParser words(piece);
    const std::string name = words.name();
    Node made = words.node(Op::kBlock);
    if (name == "for") return for_loop(words, std::move(made));
    if (name == "if") return condition(words, std::move(made));
    if (name == "set") return assignment(words, std::move(made));
    if (name == "macro") return macro(words, std::move(made));
    if (name == "generation") {
      words.expect_end();
      made.op = Op::kGeneration;
      made.parts.push_back(body());
      pass_end("endgeneration", piece.line);
      return made;
    }
    if (name != "break" && name != "continue") fail_at(piece.line, "the tag '" + shown(name) + "'");
    words.expect_end();
    if (loops_ == 0) fail_at(piece.line, "'" + name + "' outside of a loop");
    made.op = name == "break" ? Op::kBreak : Op::kContinue;
    return made;
  }

  Node for_loop(ExpressionParser& words, Node made) {
    made.op = Op::kFor;
    do made.names.push_back(words.name());
    while (words.passes(","));
    words.expect("in");
    made.parts.push_back(words.without_condition());
    Node all = words.node(Op::kConstant);
    all.value = true;
    made.parts.push_back(words.passes("if") ? words.expression() : std::move(all));
    words.expect_end();
    ++loops_;
    made.parts.push_back(body());
    --loops_;
    const bool has_else = at_ < pieces_.size() && tag() == "else";
    if (has_else) pass_end("else", made.line);
    made.parts.push_back(has_else ? body() : Node());
    pass_end("endfor", made.line);
    return made;
  }

  Node condition(ExpressionParser& words, Node made) {
    made.op = Op::kIf;
    made.parts.push_back(words.expression());
    words.expect_end();
    made.parts.push_back(body());
    while (at_ < pieces_.size() && tag() == "elif") {
      ExpressionParser more(pieces_[at_++]);
      more.name();
      made.parts.push_back(more.expression());
      more.expect_end();
      made.parts.push_back(body());
    }
    if (at_ < pieces_.size() && tag() == "else") {
      pass_end("else", made.line);
      made.parts.push_back(body());
    }
    pass_end("endif", made.line);
    return made;
  }

  Node assignment(ExpressionParser& words, Node made) {
    made.op = Op::kSet;
    made.names.push_back(words.name());
    if (words.passes(".")) made.names.push_back(words.name());
    if (words.is_at_end()) {
      made.op = Op::kSetBlock;
      made.parts.push_back(body());
      pass_end("endset", made.line);
      return made;
    }
    words.expect("=");
    made.parts.push_back(words.expression());
    words.expect_end();
    return made;
  }

  Node macro(ExpressionParser& words, Node made) {
    made.op = Op::kMacro;
    made.name = words.name();
    made.parts.emplace_back();
    words.expect("(");
    while (!words.passes(")")) {
      made.names.push_back(words.name());
      Node absent = words.node(Op::kConstant);
      absent.value = Undefined{made.names.back()};
      made.parts.push_back(words.passes("=") ? words.expression() : std::move(absent));
      words.passes(",");
    }
    words.expect_end();
    made.parts[0] = body();
    pass_end("endmacro", made.line);
    return made;
  }

  std::vector<Piece> pieces_;
  std::size_t at_ = 0;
  int depth_ = 0, loops_ = 0;
};

}  // namespace

void fail_at(int line, const std::string& what) {
  throw UserError("line " + std::to_string(line) + ": " + what);
}

Node parse_template(std::string_view text) { return TemplateParser(text).whole(); }

}  // namespace tutti::jinja
