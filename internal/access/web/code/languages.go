package code

// A language is what the page knows of a family of languages, to colour their lines. The rules are
// few and take linear time: what they read was written by an agent. The lexers that come with
// chroma aren't used, since they take 20 ms of the start of every command, and expressions among
// them can take long.
type language struct {
	files    string // endings and names of files
	comment  string // an expression for the begin of one that ends with its line; "" for none
	block    bool   // comments between /* and */
	triple   bool   // texts between three quotes
	raw      bool   // texts between backquotes
	names    bool   // words before a colon or an equals sign are names
	noCase   bool
	keywords string
}

var languages = []language{
	{files: ".go", comment: "//", block: true, raw: true, keywords: `
		break case chan const continue default defer else fallthrough for func go goto if import interface map package range
		return select struct switch type var nil true false iota any bool byte error int int64 string`},
	{files: ".js .jsx .mjs .cjs .ts .tsx .vue .svelte", comment: "//", block: true, raw: true, keywords: `
		abstract as async await break case catch class const continue default delete do else enum export extends false finally
		for from function if implements import in instanceof interface let new null of private protected public readonly return
		static super switch this throw true try type typeof undefined var void while with yield`},
	{files: ".rs", comment: "//", block: true, keywords: `
		as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut pub
		ref return self Self static struct super trait true type unsafe use where while`},
	{files: ".c .h .cc .cpp .hpp .java .cs .kt .kts .swift .scala .dart .php .proto .zig", comment: "//", block: true, keywords: `
		abstract auto bool boolean break byte case catch char class const constexpr continue default delete do double else enum
		explicit extends extern false final finally float for fun func function goto guard if implements import in include
		inline int interface internal let long message namespace new nil null nullptr object operator override package private
		protected public return short signed sizeof static string struct super switch template this throw throws true try
		typedef typename union unsigned using val var virtual void volatile when while`},
	{files: ".py .pyi .bzl BUILD", comment: "#", triple: true, keywords: `
		and as assert async await break class continue def del elif else except False finally for from global if import in is
		lambda None nonlocal not or pass raise return self True try while with yield`},
	{files: ".rb .ex .exs .cr Gemfile Rakefile", comment: "#", keywords: `
		alias and begin break case class def defmodule do else elsif end ensure false fn for if in module next nil not or redo
		rescue require retry return self super then true unless until when while yield`},
	{files: ".sh .bash .zsh .fish .mk Makefile Dockerfile .pl .r .R", comment: "#", keywords: `
		case do done elif else esac exit export fi for function if in local return set shift then until while FROM RUN COPY ADD
		ENV ARG CMD ENTRYPOINT WORKDIR EXPOSE USER my sub use`},
	{files: ".yaml .yml .toml .ini .cfg .conf .tf .hcl .properties .env .service", comment: "[#;]", names: true, keywords: `
		true false null yes no on off`},
	{files: ".json .jsonl .json5", names: true, keywords: `
		true false null`},
	{files: ".css .scss .less", block: true, names: true, keywords: `
		important media supports import keyframes layer container font-face`},
	{files: ".sql", comment: "--", block: true, noCase: true, keywords: `
		add all alter and as asc begin between by case check column commit constraint create default delete desc distinct drop
		else end exists foreign from group having if in index inner insert integer into is join key left like limit not null on
		or order primary references returning right select set table text then union unique update using values view when where
		with`},
	{files: ".lua .hs .elm .ada", comment: "--", keywords: `
		and break case data do else elseif end false for function if import in let local module nil not of or repeat return then
		true type until where while`},
	{files: ".html .htm .xml .svg .xhtml .tmpl", keywords: ``},
}
