"""Programs and settings with loose lines are whole, with a reason; sentences like them are not."""

from __future__ import annotations

import pytest

from headrace.compressors import Budget, Compressor, make_counter, make_scorer
from headrace.compressors.detection import detect
from headrace.compressors.dialects import is_dialect, is_directives

COMPRESSOR = Compressor(make_scorer("auto"), make_counter())
TEXTS = {
    "make": (
        "CC = gcc\n"
        "CFLAGS = -O2 -Wall\n"
        "\n"
        "all: build\n"
        "\n"
        "build: main.o util.o\n"
        "\t$(CC) $(CFLAGS) -o app main.o util.o\n"
        "\n"
        "clean:\n"
        "\trm -f *.o app\n"
    ),
    "lua": (
        "local x = 3\n"
        "local function f(a)\n"
        "  if not a then return nil end\n"
        "  return a * x\n"
        "end\n"
        "print(f(2))"
    ),
    "lua module": (
        "local M = {}\n"
        "\n"
        "function M.setup(opts)\n"
        "  opts = opts or {}\n"
        "  for k, v in pairs(opts) do\n"
        "    M[k] = v\n"
        "  end\n"
        "  return M\n"
        "end\n"
        "\n"
        "return M\n"
    ),
    "two lines of haskell": ("add :: Int -> Int -> Int\nadd a b = a + b"),
    "haskell": (
        "module Mill where\n"
        "\n"
        "import Data.List (sort)\n"
        "\n"
        "data Wheel = Wheel Int | Stone\n"
        "  deriving (Show, Eq)\n"
        "\n"
        "share :: Double -> Double\n"
        "share h\n"
        "  | h > 3 = 0.85\n"
        "  | otherwise = 0.6\n"
        "\n"
        "main :: IO ()\n"
        "main = do\n"
        '  putStrLn "hi"\n'
        "  print (share 2)\n"
    ),
    "rc of a shell": ("[ -f ~/.x ] && . ~/.x\nexport PATH=$PATH:/opt/bin\nalias ll='ls -l'\n"),
    "exports": (
        "export PATH=/usr/local/bin:$PATH\n"
        "export EDITOR=vim\n"
        'eval "$(direnv hook bash)"\n'
        "source ~/.aliases\n"
    ),
    "one line of a shell": ("[ -f ~/.x ] && . ~/.x"),
    "make.bat": (
        "@echo off\n"
        "setlocal\n"
        "set SPHINXBUILD=sphinx-build\n"
        'if "%1" == "" goto help\n'
        "%SPHINXBUILD% >NUL 2>NUL\n"
        "if errorlevel 9009 (\n"
        "\techo.The command was not found.\n"
        "\texit /b 1\n"
        ")\n"
        ":help\n"
        "%SPHINXBUILD% -M help\n"
        ":end\n"
        "popd\n"
    ),
    "fish": (
        "function deactivate -d 'Exit the virtual environment'\n"
        '    if test -n "$_OLD_PATH"\n'
        "        set -gx PATH $_OLD_PATH\n"
        "        set -e _OLD_PATH\n"
        "    end\n"
        "end\n"
        "set -gx VIRTUAL_ENV /opt/venv\n"
    ),
    "assembler of intel": (
        "section .text\n"
        "global _start\n"
        "_start:\n"
        "    mov rax, 1\n"
        "    mov rdi, 1\n"
        "    mov rsi, msg\n"
        "    mov rdx, 13\n"
        "    syscall\n"
        "    ret\n"
    ),
    "assembler of at&t": (
        "main:\n\tpushq\t%rbp\n\tmovq\t%rsp, %rbp\n\tmovl\t$0, %eax\n\tpopq\t%rbp\n\tret\n"
    ),
    "vim": (
        "set nocompatible\n"
        "set tabstop=4\n"
        "set expandtab\n"
        "syntax on\n"
        "filetype plugin indent on\n"
        "nnoremap <leader>w :w<CR>\n"
        "autocmd FileType python setlocal sw=4\n"
    ),
    "emacs": (
        "(setq inhibit-startup-message t)\n"
        "(tool-bar-mode -1)\n"
        "(require 'package)\n"
        "(use-package magit\n"
        "  :ensure t\n"
        '  :bind ("C-x g" . magit-status))\n'
    ),
    "powershell": (
        "param([string]$Name)\n"
        "$items = Get-ChildItem -Path $Name -Recurse\n"
        "foreach ($i in $items) {\n"
        "    Write-Host $i.FullName\n"
        "}\n"
        "Get-Process | Where-Object { $_.CPU -gt 10 } | Sort-Object CPU\n"
    ),
    "r": ("library(ggplot2)\nx <- c(1, 2, 3)\ny <- x^2\nm <- lm(y ~ x)\nsummary(m)\nplot(x, y)\n"),
    "awk": (
        'BEGIN { FS = "," }\n$3 > 10 { total += $3 }\n/error/ { n++ }\nEND { print total, n }\n'
    ),
    "awk of two lines": ("NR > 1 { a[$1] += $2 }\nEND { for (k in a) print k, a[k] }"),
    "git blame": (
        "3f1c2aa1 (Ann Lee 2024-01-02 10:00:00 +0100  1) import os\n"
        "3f1c2aa1 (Ann Lee 2024-01-02 10:00:00 +0100  2) \n"
        "9be01d4c (Bob Ray 2025-03-04 11:00:00 +0100  3) def main(path):\n"
        "9be01d4c (Bob Ray 2025-03-04 11:00:00 +0100  4)     # list what is there\n"
        "9be01d4c (Bob Ray 2025-03-04 11:00:00 +0100  5)     return os.listdir(path)\n"
    ),
    "crontab": (
        "SHELL=/bin/sh\n"
        "# m h dom mon dow command\n"
        "17 *    * * *   root    cd / && run-parts --report /etc/cron.hourly\n"
        "25 6    * * *   root    test -x /usr/sbin/anacron || run-parts /etc/cron.daily\n"
    ),
    "crontab without a head": (
        "0 3 * * * /opt/backup.sh --all\n*/5 * * * * /opt/poll\n@reboot /opt/start\n"
    ),
    "sshd_config": (
        "Port 22\n"
        "PermitRootLogin no\n"
        "PasswordAuthentication no\n"
        "X11Forwarding yes\n"
        "Subsystem sftp /usr/lib/openssh/sftp-server\n"
        "AcceptEnv LANG LC_*\n"
    ),
    "hosts": (
        "127.0.0.1\tlocalhost\n"
        "::1\tlocalhost ip6-localhost ip6-loopback\n"
        "ff02::1 ip6-allnodes\n"
        "10.0.0.5 db.internal db\n"
    ),
    "requirements": (
        "numpy==1.26.4\nrequests>=2.31,<3\nflask[async]~=3.0\npydantic\n-r base.txt\n"
    ),
    "requirements, one with a version": ("numpy\npandas\nscipy==1.11\n"),
    "fstab": (
        "# <file system> <mount point> <type> <options> <dump> <pass>\n"
        "UUID=ab12-cd34 / ext4 errors=remount-ro 0 1\n"
        "/dev/sda2 none swap sw 0 0\n"
        "tmpfs /tmp tmpfs defaults,noatime 0 0\n"
    ),
    "passwd": (
        "root:x:0:0:root:/root:/bin/bash\ndaemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin\n"
    ),
    "resolv.conf": ("nameserver 1.1.1.1\nnameserver 8.8.8.8\nsearch example.org\n"),
    "go.mod": ("module example.org/mill\n\ngo 1.22\n\nrequire (\n\tgithub.com/a/b v1.2.3\n)\n"),
}
SENTENCES = [
    "source code is fun\nand so is the rest of it",
    "local people say so, and they know it well",
    "@ann please look at this before noon",
    "REM sleep matters more than most of us think",
    "if it rains then stay at home\nfor sure it will",
    "(see-through glass)\n(and more of that)",
    "Ann: hello there, how are you\nBob: x = 5 is what I found",
    "JavaScript for beginners\nTypeScript for those who know it",
    "Things to do:\n\tbuy milk for all of us\n\tsell the eggs",
    "\tUse --static[=LIST] as an option when\n\tyou want all of the programs in one.",
    "set up the tent before it is dark\nset aside some time for it",
    "export goods to China\nimport China goods",
    "a.py:12:3: error: bad name here\nb.py:1:2: error: a worse name",
    "10:12:13: the mill started\n10:12:14: it is done",
    "Monday 12 sacks\nTuesday 9 sacks\nWednesday none at all",
    "eat 3 apples, 4 pears\ndrink some water\nsleep well",
    "Roses are red\n  violets are blue\n  sugar is sweet",
]


@pytest.mark.parametrize("rate", [0.3, 0.7])
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_text_in_a_dialect_is_whole_with_a_reason(text: str, rate: float) -> None:
    for given in (text, text.replace("\n", "\r\n")):
        [result] = COMPRESSOR.compress([given], Budget(rate=rate))
        assert result.text == given
        assert "kept whole" in (result.reason or "")
        assert "not in English" not in (result.because or "")


@pytest.mark.parametrize("text", SENTENCES)
def test_sentences_with_the_words_of_a_dialect_are_none(text: str) -> None:
    assert not is_dialect(text)
    assert not is_directives(text)


def test_a_makefile_in_a_letter_leaves_the_letter_prose() -> None:
    letter = "We build the mill with what is below, and nobody needs more than that.\n\n"
    assert detect(f"{letter * 3}{TEXTS['make']}\n{letter * 3}") == "prose"
