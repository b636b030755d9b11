"""Programs and settings with loose lines, known by the lines that they alone have.

Each dialect says what its lines look like, and which of them are its own: nearly all lines of a
text must be the former, some of them the latter. A dialect that is not named here is judged by
``source``; a few lines that another language has, too, are taken for either.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from .shapes import ends

_SAMPLE = 60_000
_MOST_LINES = 400
_FITS = 0.9
_CONTINUED = re.compile(r"[\\^]\r?\n[ \t]*")


@dataclass(frozen=True, slots=True)
class _Dialect:
    """``line`` and ``own`` match a line from its start; ``remark`` begins a comment.

    ``share`` of the lines must be its own, and one of them at least.
    """

    line: re.Pattern[str]
    own: re.Pattern[str]
    remark: str = "#"
    share: float = 0.2
    fewest: int = 2
    """Lines that a text must have."""

    def fits(self, lines: list[str]) -> bool:
        said = [line for line in lines if not line.lstrip().startswith(tuple(self.remark.split()))]
        if len(said) < self.fewest:
            return False
        own = sum(bool(self.own.match(line)) for line in said)
        if own < max(1, self.share * len(said)):
            return False
        return sum(bool(self.line.match(line)) for line in said) >= _FITS * len(said)


_COMMAND = (
    r"(?:@|-)?(?:rm|cp|mv|cd|mkdir|echo|touch|install|python3?|pip|uv|docker|go|cargo|npm|yarn|git"
    r"|gcc|cc|make|pytest|tar|curl|find|sed|awk|test|sudo|\./\S+)(?: |$)"
)
_SHELL = (
    r"\s*(?:(?:export|readonly|declare|typeset|local) (?:-\w+ )?\w+=|export [A-Z_]+$"
    r"|alias \S+=|(?:source|\.) [~/.$\"]\S*$|eval [\"'`$(]|unset (?:-\w )?[A-Z_]\w*|setenv [A-Z_]+"
    r"|unsetenv [A-Z_]|shopt -|setopt [a-z_]+$|autoload -|bindkey |umask \d+$|ulimit -|abbr -"
    r"|functions -|command -v|builtin \w+ [-\"$]|trap .* (?:EXIT|INT|TERM|ERR|HUP)|rehash$"
    r"|\[\[? .* \]\]?(?:$|[ ;])|test [-!\"$]|(?:if|while|elif|else if|and|or) (?:! |not )?"
    r"(?:\[\[? |\(\(?\s*[!$\"-]|test [-!\"$]|(?:command|type|string|set|functions|builtin|grep) -)"
    r"|set -\w+\b|set \w+ ?= ?\S|set \w+ [\"$]|(?:complete|bind) -\w"
    r"|[A-Za-z_]\w*\+?=(?:[\"'$(~/].*|\S*)(?:$| *[;#&|])|case \S+ in$|switch ?\("
    r"|[\w-]+ ?\(\) ?\{|function (?:[\w-]*[_-][\w-]*$|[\w-]+ -))"
)
_OPERAND = (
    r"(?:(?:byte|d?word|qword|xmmword|offset|ptr|short)\s+)*[-\w%$#@*\[\](){}.+:=!]+"
    r"(?:\s*[-+*]\s*\w+\]?)?"
)
_REGISTER = (
    r"(?:%\w+|\$-?\w+|[re]?[abcd][xhl]|[re]?(?:si|di|sp|bp)|[rxwsvq]\d+|sp|lr|fp|\[[^\]]*\])"
)
_ADDRESS = r"(?:\d{1,3}(?:\.\d{1,3}){3}|[\da-fA-F:]*::[\da-fA-F:.]*)"
_CODE = (
    _Dialect(  # make
        re.compile(
            r"[\w.$(){}/-]+ *(?:[:+?!]|::)?=|\t\s*\S|[\w.%$(){}/@ \\-]{1,200}::?(?: .*|$)"
            r"|\s*(?:ifn?eq|ifn?def|else|endif|-?s?include|(?:un)?export|define|endef|override"
            r"|vpath)\b|\s*\$[({].*[)}]\s*$"
        ),
        re.compile(
            r"[\w.-]+ *(?:[:+?!]|::)= *\S|[A-Z_]+ = \S|[^:]{1,200}[:=].*\$[({]"
            rf"|\t\s*(?:[^A-Z].*(?:\$[(@<^*{{$?]| --?\w|&& )|{_COMMAND})"
            r"|\.PHONY ?:|\s*(?:ifn?eq|ifn?def) ?[(\"'$\w]|(?:endif|endef)$|\s*\$[({]"
            r"(?:eval|call|foreach|if)\b"
        ),
    ),
    _Dialect(  # Haskell
        re.compile(
            r"[\w']+(?:, [\w']+)* ::|[\w'(][^=\n]{0,200} = ?|[\w'(].* <- |\s|module [A-Z]|import "
            r"|(?:data|newtype|type|class|instance|deriving|infix[lr]?) |\{-|[\w'].* do$"
            r"|\)?\s*where$|[\w'(][\w' ()]*$"
        ),
        re.compile(
            r"[\w']+(?:, [\w']+)* :: \S|module [A-Z][\w.]*.* where$"
            r"|import (?:qualified )?[A-Z]\w*(?:\.\w+)*(?: ?\(.*| as .*| hiding .*)?$"
            r"|(?:data|newtype) [A-Z]\w*.* = |\{-# "
        ),
        remark="--",
        share=0.15,
    ),
    _Dialect(  # shells: sh, bash, zsh, csh, fish
        re.compile(
            rf"{_SHELL}|\s*(?:then|fi|else|do|done|esac|end|endif|endsw|breaksw|;;|exit|return"
            r"|\}|\{)(?:$|[ ;])|.*[$|&;]|.*(?:\d?>|<)|\s*\S+\)|.* --?\w"
            r"|\s*(?:echo|printf|cd|if|for|while|case|switch|set|goto|builtin|complete) .*"
            r"|\s*[\w-]+$"
        ),
        re.compile(_SHELL),
        share=0.25,
        fewest=1,
    ),
    _Dialect(  # cmd.exe
        re.compile(
            r"(?i)\s*@?(?:echo|setlocal|endlocal|set|if|else|goto|rem|call|for|exit|popd|pushd"
            r"|title|cd|shift|pause|start|copy|del|move|mkdir|md|xcopy)(?:$|\W)|\s*[:(){]|.*%\w|.*>"
            r"|\s*\S+(?: [-/.\w]+){0,3}$"
        ),
        re.compile(
            r"(?i)\s*(?:@?echo off$|@?setlocal$|@?endlocal$|@?set \"?\w+=|if (?:not )?(?:\"?%|/i "
            r"|exist [\"%\w.\\]+ [\w(]|errorlevel \d|defined \w+ \()|goto :?\w+$|for /?\w? ?%%"
            r"|exit /b|@(?:call|if|python|node|start|cd|rem|exit|goto|\"?%)\b"
            r"|(?:.*[^\w%])?%(?:\w+%|~\w*\d|\*))"
        ),
        remark="::",
        share=0.25,
        fewest=1,
    ),
    _Dialect(  # assemblers
        re.compile(
            r"(?i)[\w.$@?]+:|\s*\.\w+|\s*(?:section|segment|global|globl|extern|bits|org|default"
            r"|align|db|dw|dd|dq|equ|end|include\w*)\b.*$|\s*[\w.$@?]+\s+(?:proc|endp|equ|d[bwdq]"
            r"|macro|export|area)\b|\s*(?:end|endp|ret\w*|nop|leave|syscall|hlt|cld|std|cli|sti)\s*$"
            rf"|\s+[a-z.]{{1,10}}\s+{_OPERAND}(?:\s*,\s*{_OPERAND}){{0,4}}\s*(?:[;#@/].*)?$"
            r"|[a-z]+\s+\S+$"
        ),
        re.compile(rf"(?i)\s+[a-z.]{{1,10}}\s+(?:{_REGISTER},\s*\S|\w+,\s*{_REGISTER}\s*(?:$|,))"),
        remark="; # // @",
        fewest=3,
    ),
    _Dialect(  # vim
        re.compile(
            r"\s*:?(?:set|setl|setlocal|let|[nivxsoc]?(?:nore)?map|autocmd|au|augroup|syn|syntax|hi"
            r"|highlight|HiLink|filetype|fu|func|function|endf\w*|endif|endfor|endwhile|endtry|try"
            r"|call|com|command|exe\w*|if|else|elseif|for|while|finish|runtime|colorscheme|source"
            r"|echo\w*|return|unlet|silent|normal|Plug|packadd|def|enddef|export|var|const|import"
            r"|vim9script|break|continue|abort|catch|finally|delcommand|sil|keepj|unsilent|ec|redraw"
            r"|elif|en|el|endfun|retu|setf|setfiletype|throw|lua|py|python)(?:!|\b).*|\s*[\\|\"#})\]]"
            r"|\s*\S+ ?(?:[-+.]?=|\()"
        ),
        re.compile(
            r"\s*:?(?:set (?:[a-z]+(?:[+-]?=|&)|no[a-z]+$|expandtab$|number$)|setl(?:ocal)? \w+="
            r"|let &?[bgslwav]:\w|[nivxsoc]noremap |augroup \w|autocmd |au!|au [A-Z]\w+\S* [*<\w]"
            r"|syn(?:tax)? (?:on|off|match|region|keyword|cluster|case|sync|clear|include)\b"
            r"|hi(?:ghlight)? (?:def|link|\w+ \w+=)|HiLink |filetype (?:plugin|on|indent)|fu\w*! "
            r"|endfunction|endfun$|enddef|vim9script|if !?(?:exists|has)\(|runtime!? \S*[/.]"
            r"|colorscheme \w+$|packadd|def \w+\(|exe(?:cute)? [\"'])"
        ),
        remark='"',
        fewest=1,
    ),
    _Dialect(  # awk
        re.compile(r"(?:BEGIN|END|[^{}\n]{0,200})\s*\{|\s+\S|\}|function \w+\(|@\w+ "),
        re.compile(r"(?:BEGIN|END) ?\{|.{0,200}\$\d.*\{|.{0,200}\{.*(?:\$\d|print)|\s*print\b.*\$"),
        share=0.3,
        fewest=1,
    ),
    _Dialect(  # Lisp
        re.compile(r"\s*[(;\"')\[]|\s+\S"),
        re.compile(
            r"\((?:def(?:un|var|n|macro|const|custom|group|face|parameter|struct|class|method"
            r"|package|ine-[\w-]+|alias|advice|subst)?|setq\w*|use-package|in-package"
            r"|eval-when-compile|add-(?:hook|to-list))\s\S"
            r"|\((?:let\*? \(|(?:require|provide) '|load\w* \"|lambda \(|ns [\w.]+$)"
            r"|\([a-z]+(?:-[a-z]+)+ (?:-?\d+|t|nil|'\S+|\".*\"|\(.*\))\)+$"
        ),
        remark=";",
        share=0.15,
        fewest=1,
    ),
    _Dialect(  # Lua
        re.compile(
            r"\s*(?:local|function|if|elseif|else|end|for|while|repeat|until|return|do|break|goto)\b"
            r"|\s*[\w.:\[\]\"']+ ?(?:[=(\"{]|, ?\w+ ?=)|\s*[)}\]{]|\s+\S"
        ),
        re.compile(
            r"\s*(?:local (?:function \w+ ?\(|\w+(?:, ?\w+)* ?=)|function [\w.:]+ ?\(.*\)"
            r"|if .* then(?:$| .*\bend$)|for \w+(?:, ?\w+)* (?:=|in) .* do\b|end[,)]*$)"
        ),
        remark="--",
        share=0.3,
    ),
    _Dialect(  # go.mod
        re.compile(r"(?:module|go|toolchain|require|replace|exclude|retract) \S|\s+\S+ v\d|\)"),
        re.compile(r"module \S*[./]\S*$|\s+\S+ v\d|require \S+ v\d"),
        remark="//",
    ),
)
_SETTINGS = (
    _Dialect(  # crontab
        re.compile(r"(?:[\d*/,-]+\s+){3}(?:[\d*/,A-Za-z-]+\s+){2}\S|@[a-z]+\s+\S|\w+ ?= ?\S*"),
        re.compile(
            r"(?=[^*\n]{0,30}\*)(?:[\d*/,-]+\s+){3}(?:[\d*/,A-Za-z-]+\s+){2}\S"
            r"|@(?:reboot|daily|hourly|weekly|monthly|yearly)\s+\S"
        ),
        share=0.5,
        fewest=1,
    ),
    _Dialect(  # sshd_config, ssh_config, login.defs
        re.compile(r"\s*[A-Z][A-Za-z0-9_]+(?:\s+|\s*=\s*)\S+(?:\s+\S+){0,7}$(?<![.!?;:])"),
        re.compile(
            r"\s*(?:[A-Z]+[a-z\d]+[A-Z]\w*|[A-Z]+_[A-Z_]+|Port|Host)\s+"
            r"(?:yes|no|\d+|\S*[/*_]\S*|[a-z-]+(?:,[\w.@-]+)+)(?:$|\s)"
        ),
        share=0.5,
    ),
    _Dialect(  # hosts
        re.compile(rf"{_ADDRESS}\s+[\w.-]+(?:\s|$)"),
        re.compile(rf"{_ADDRESS}\s+[A-Za-z][\w.-]*(?:\s+[\w.-]+)*\s*(?:#.*)?$"),
        share=0.9,
    ),
    _Dialect(  # resolv.conf
        re.compile(r"(?:nameserver|search|domain|options|sortlist)\s+\S"),
        re.compile(r"nameserver\s+[\da-fA-F.:]+$"),
        remark="# ;",
        fewest=1,
    ),
    _Dialect(  # services, protocols, rpc
        re.compile(r"[\w.+/-]+\s+\d+(?:/\w+)?(?:\s+[\w.+/-]+)*\s*(?:#.*)?$"),
        re.compile(r"[\w.+-]+(?:\s+\d+/(?:tcp|udp|sctp|ddp|dccp)\b|\t\s*\d+(?:\t|$))"),
        share=0.8,
        fewest=3,
    ),
    _Dialect(  # fstab
        re.compile(r"\S+\s+(?:/\S*|none|swap)\s+[\w.,-]+\s+\S+(?:\s+\d\s+\d)?\s*$"),
        re.compile(
            r"\S+\s+\S+\s+(?:ext\d|swap|tmpfs|proc|sysfs|nfs\d?|vfat|xfs|btrfs|auto|iso9660|udf"
            r"|ntfs|cifs|devpts|overlay)\b"
        ),
        share=0.5,
        fewest=1,
    ),
    _Dialect(  # requirements.txt
        re.compile(
            r"[A-Za-z0-9][\w.-]*(?:\[[\w,. -]+\])?(?: ?(?:[=~!<>]=|===|[<>]) ?[\w.*+!-]+,?)*"
            r"(?: ?;.*| ?@ ?\S+| *\\| +#.*)?\s*$|--?\w|\s+--hash|git\+\S+"
        ),
        re.compile(r"[A-Za-z0-9][\w.-]*(?:\[[\w,. -]+\])? ?(?:[=~!<>]=|===|[<>]) ?\d"),
        share=0.3,
        fewest=1,
    ),
    _Dialect(  # passwd, group
        re.compile(r"[a-z_][\w.-]*:[x*!]:\d+:"),
        re.compile(r"[a-z_][\w.-]*:[x*!]:\d+:"),
        share=0.9,
    ),
    _Dialect(  # PAM
        re.compile(r"-?(?:auth|account|password|session)\s+\S|@include\s+\S"),
        re.compile(r".*\bpam_\w+\.so\b|@include\s+[\w-]+$"),
        share=0.4,
        fewest=1,
    ),
    _Dialect(  # inputrc
        re.compile(r"\s*(?:set [\w-]+ \S+$|\$(?:if|else|endif|include)|\"[^\"]+\": ?\S)"),
        re.compile(r"\s*(?:set [a-z]+(?:-[a-z]+)+ \S+$|\"\\[^\"]+\": ?\S)"),
        share=0.4,
    ),
)


def is_dialect(text: str) -> bool:
    r"""Whether a text is a program in make, shell, Haskell and other languages with loose lines.

    >>> is_dialect("all: app\n\napp: main.o\n\t$(CC) -o app main.o\n")
    True
    """
    lines = _lines(text)
    return any(dialect.fits(lines) for dialect in _CODE)


def is_directives(text: str) -> bool:
    r"""Whether the lines are settings without a sign between name and value, or such rows.

    >>> is_directives("Port 22\nPermitRootLogin no\n"), is_directives("numpy==1.26.4\nscipy>=1\n")
    (True, True)
    """
    lines = _lines(text)
    return any(dialect.fits(lines) for dialect in _SETTINGS)


def _lines(text: str) -> list[str]:
    sample = _CONTINUED.sub(" ", text[:_SAMPLE])
    lines = [ends(line.rstrip()) for line in sample.splitlines() if line.strip()]
    return lines[:: -(-len(lines) // _MOST_LINES) or 1]
