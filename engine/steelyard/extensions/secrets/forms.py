"""The forms of secrets: the names that people give them, where their values stand, and what issuers make of them.

The kinds are those of gitleaks and detect-secrets, with what people write in questions beside them: assignments,
flags, headers, addresses, sentences. detect-secrets itself reads lines of code: of the planted queries of our
tests it finds one in five. Every pattern takes time in proportion to the text.
"""

from __future__ import annotations

import json
import re
from importlib import resources

_DATA = resources.files(__package__)
_NAMES = json.loads(_DATA.joinpath("names.json").read_text("utf-8"))
STRONG, FOREIGN, SHORT, WEAK, LOGIN = ("|".join(alternatives) for alternatives in _NAMES.values())
"""Names of what is always secret, which may stand at the end of longer names; passwords in other languages, whose
sentences we do not read, so that their values have digits or signs; short names, which are parts of other words;
names of what is secret where its value looks like it; names of numbers that let somebody in."""
ORDINARY = frozenset(_DATA.joinpath("ordinary.txt").read_text("utf-8").split())
"""What follows the name of a secret in a sentence and is none."""
ENDINGS = re.compile(r"[a-z]+(?:ed|ing|able|ible|ation|ment|ness|less|ory|ency|ance|ly|ized?|ised?)$")
ALGORITHMS = re.compile(
    r"(?:sha|md|rs|hs|es|ps|aes|utf|base|pbkdf|argon|oauth|auth|http|ipv|bcrypt|scrypt|v|x|k|s|ed|log|web|p|h|e|i|l|c)[-_]?\d+\w{0,3}"
    r"|1password|\d+(?:st|nd|rd|th|s|m|h|d|ms|kb|mb|gb|x|fa)",
    re.IGNORECASE,
)
REFERENCE = re.compile(
    r"""[$%<{\[(*@]|\*{2,}|x{3,}$|\.{2,}|…|-|(?:null|none|nil|undefined|true|false|todo|redacted|masked|removed)\b
    |(?:os|env|process|req|request|self|this|config|settings|secrets|vars|params|args|options)[.\[(]
    |[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*[(\[]|[a-z_]+(?:\.[A-Za-z_]+)+$|your[-_ ]|example\b|lambda\b""",
    re.VERBOSE | re.IGNORECASE,
)
ASSIGNED = re.compile(
    rf"""
    (?P<strong>(?:{STRONG})|(?<![^\W_])(?:{SHORT})|(?<=[a-z])(?-i:Pass|Pwd))
        (?P<more>(?:[-_][a-z0-9]{{1,12}}|\d?(?=["'`\]\s:=]|$)){{0,2}})
        ["'`\])]{{0,2}}(?:\s{{1,3}}value(?==))?\s{{0,4}}(?P<sign>:=|=>|->|==?\s?|:|>
            |\?=)\s{{0,4}}["'`(]{{0,2}}(?=(?P<value>[^\s"'`&;,]{{1,400}}))
    | (?<![^\W_])(?P<weak>{WEAK})["'`\])]{{0,2}}\s{{0,4}}(?:=|:)\s{{0,4}}["'`]?(?=(?P<its>[^\s"'`&,]{{4,400}}))
    """,
    re.VERBOSE | re.IGNORECASE,
)
HARMLESS_ENDS = (
    r"[-_](?:count|url|uri|type|name|file|path|policy|length|size|expiry|expires|ttl|limit|stdin|prompt|field|env|var|ref"
    r"|format|min|max|age|hint|reset|required|manager|store|endpoint|flow|s|hash(?:er|ers|ing)|validators?|rotation|index)$"
)
PARTS = re.compile(
    rf"""
    (?<![\w-])--?(?:[\w-]{{0,30}}[-_])?(?:{STRONG}|{SHORT}|auth|credentials?
        |key)(?P<end>(?:-[a-z]+)?)[=\s]\s{{0,3}}(?P<quote>["']?)(?P<flag>[^\s"']{{1,400}})
    | (?:{STRONG}|{SHORT})(?:\s+(?:for|of|to|on|from|in)(?:\s+[\w.-]{{1,40}}){{1,4}}?)?\s+(?:is|was|are|lautet
        |ist|est|es)\s*:?\s*["'`]?(?P<said>[^\s"'`]{{3,400}})
    | (?<![\w-])(?:{STRONG}|{SHORT})\s+["'`(]?(?P<beside>[^\s"'`]{{5,400}})
    | (?:{FOREIGN})["']?\s{{0,3}}(?:[=:是为は는은]|[ ](?:ist|est|es|lautet|je|to|[eé]|is|är
        |on)[ ])?\s{{0,3}}["']?(?P<foreign>[!-~]{{4,400}})
    | (?<![\w/.@])(?:admin|administrator|root|postgres|guest|sa)[/:](?P<known>[^\s"'/:@]{{4,100}})(?![/\w])
    | \b(?:{LOGIN})\b(?:\s+(?:is|was))?\s*[:=#]?\s*(?P<number>[\w-]{{3,14}})
    | (?P<as>[^\s"'`]{{5,100}})["'`]?\s+(?:as|is|was|for)\s+(?:the|my|our|a|your|his
        |her)?\s*(?:\w{{1,20}}\s+)?(?:{STRONG})\b
    | \b(?:bearer|basic|negotiate|apikey|digest)\s+(?P<bearer>[\w.+/=~-]{{8,4000}})
    | \bauthorization["']?\s*[:=]\s*["']?(?:\w{{3,10}}\s+)?(?P<authorization>[\w.+/=~-]{{6,4000}})
    | [?&\#](?:[\w-]{{0,30}}?)(?:{STRONG}|{SHORT}|sig|signature|sid|key|auth|code|jwt|session
        |hmac)=(?P<query>[^&\s"'\#]{{6,4000}})
    | \b(?:credentials?|creds|login|log\s+in|sign\s+in)\b(?:\s*:|\s+(?:with|as|is
        |are))?\s+[\w.@-]{{2,40}}\s*(?:/|:)\s*(?P<pair>[^\s"'/]{{4,100}})
    """,
    re.VERBOSE | re.IGNORECASE,
)
COMMANDS = re.compile(
    r"""
      \bcurl\b[^\n]{0,300}?\s(?:-\w{0,4}u
          |--(?:proxy-)?user)[=\s]*["']?[^\s:"']{0,80}["']?:["']?(?P<curl>[^\s"'@]{2,})
    | \s-u\s*["']?[^\s:"'/]{1,80}:(?P<user>[^\s"'@/]{3,})
    | \b(?:mysql\w*|mariadb[\w-]*|7z\w?|mongo\w*)\b[^\n]{0,200}?\s-p(?P<joined>[^\s"']{3,}|["'][^"']{3,})
    | \b(?:sshpass|mongo\w*|(?:docker|podman|helm\s+registry|az\s+acr|nerdctl|oc|buildah|skopeo)\s+login|unzip
        |zip|sqlcmd
        |ldap\w+|redis-cli|htpasswd|openssl|snmp\w+|smbclient|kinit|expect|rabbitmqadmin|influx|cqlsh|bcp|ftp
            |lftp|gpg)\b
        [^\n]{0,200}?\s-(?:p|P|a|w|k|pw|K|passin|passout|pass)\s+["']?(?:pass:)?(?P<spaced>[^\s"'-][^\s"']{2,})
    | \becho\s+["']?(?P<echo>[^\s"'|]{3,200})["']?\s*\|[^\n]{0,80}(?:-stdin|\blogin\b|\bsudo\s+-S|passwd)
    | \bnet\s+user\s+\S{1,80}\s+(?P<account>[^\s/]{4,}) | /user:\S{1,80}\s+(?P<windows>[^\s/]{4,})
        | \s-U\s*[^\s%]{1,80}%(?P<samba>\S{3,})
    | \bhtpasswd\b\s+-\w*b\w*\s+\S+\s+\S+\s+(?P<htpasswd>\S{3,})
    """,
    re.VERBOSE,
)
ISSUED = re.compile(
    r"""
      -----BEGIN[ A-Z0-9]{0,40}PRIVATE[ ]KEY | PuTTY-User-Key-File | AGE-SECRET-KEY-1
    | \b(?:AKIA|ASIA|AROA|AIDA|ABIA|ACCA)[0-9A-Z]{12} | \bLTAI\w{12} | \bAIza[\w-]{20} | \bya29\.[\w-]{10}
        | \b1//0[\w-]{20}
    | \bgh[opusr]_\w{16} | \bgithub_pat_\w{16} | \bgl[a-z]{2,6}-[\w-]{12} | \bxox[a-z]-[\w-]{8}
        | \bxapp-[\w-]{8} | \bxoxe\.
    | \b(?:sk|pk|rk|whsec|sess|re|ak)[-_](?:live|test|prod|proj|ant|or|svcacct|admin|lf)[-_][\w-]{8}
    | \bsk-[\w-]{16} | \bwhsec_\w{12} | \beyJ[\w-]{8,}\.[\w-]{4} | \bZXlK[\w+/=]{20}
        | \b[Ss]G\.[\w-]{8,}\.[\w-]{8} | \bGOCSPX-[\w-]{8}
    | \b(?:npm|hf|gsk|r8|lin_api|dckr_pat|do[opr]_v1|shp(?:at|ca|pa|ss)|pscale_\w{2,5}|rubygems|glsa|glc|sntrys
        |sntryu|figd|ntn
        |pul|rdme|sbp|tfp|nfp|sqp|squ|sqa|sgp|duffel|shippo|FLWSECK|FLWPUBK|pnu|sm_[aps]at|CLOJARS|doppler|tvly
        |nvapi|xai|pplx|fo1|fm1|fm2|dp\.pt|sq0\w{3}|lsv2_\w\w|phc|phx|e2b|jina|cfut|vercel|v1\.0|PMAK|NRAK|NRII
            |NRJS|ATATT|ATCTT
        |HRKU|LLM|pypi|AQVN|YC|EAA\w|EZ[AT]K|ico|xkeysib|xsmtpsib|tk-us|hv[bs]|dt0c01|mfp|p8e)
        [-_.](?=[\w=-]{0,40}[0-9])[\w.=-]{18}
    | \b(?:secret|key|pat|ops|sl|live|test|rnd|sm|fc|bb|re|ak)[-_.](?=[A-Za-z]{0,20}\d)[A-Za-z0-9]{16}
    | \b(?:hf|api_org)_[A-Za-z]{20} | \bEZ[AT]K\w{40} | \bGR1348941\S{16} | \bAPI-[A-Z0-9]{26}\b
        | \bFLWSECK_\S{12} |
       \.atlasv1\.[\w-]{20} | \b\d{8,10}:[\w-]{35} | \b\w{3}\dQ~[\w.~-]{20} | \bEAA[A-Z]\w{60}
        | \b(?:AC|dapi)[0-9a-f]{32}\b
    | \$(?:[1567y]|2[abxy]?|apr1|argon2\w{0,2}|scrypt|pbkdf2[\w-]{0,10})\$[^\s$]{2,40}\$?[^\s]{16}
        | \{S?SHA\d*\}[\w+/=]{16}
    | \b[a-z][a-z0-9+.-]{1,20}://[^\s/:@]{0,100}:(?![$<{*])[^\s/@]{1,200}@ | ://[\w-]{16,100}@
    | (?<![\w/.-])[\w.-]{2,40}:[^\s/@:]{4,80}@(?!sha\d)[\w-]+\.[\w.-]+
    | (?:(?:[\w-]{1,40}\.){1,6}[\w-]{2,40}|localhost|\*):(?:\d{2,5}|\*):[\w*-]{1,40}:[\w*-]{1,40}:[^\s:]{4}
    | hooks\.slack\.com/(?:services|workflows|triggers)/\w{6}
        | discord(?:app)?\.com/api/(?:v\d+/)?webhooks/\d{6,}/[\w-]{16}
    | \.office(?:365)?\.com/webhook\w*/\w{6} | \.logic\.azure\.com\S{0,400}sig=
        | chat\.googleapis\.com\S{0,200}token=
    | hooks?\.(?:zapier|[\w.]{0,12}make|[\w.]{0,12}integromat)\.com/(?:hooks/catch/)?\w{6}
        | maker\.ifttt\.com/\S{0,100}key/\w{8}
    | api\.telegram\.org/bot\d{6} | /(?:hooks|webhooks?|incoming)/(?=[\w-]{0,40}\d)[\w-]{20}
        | otpauth://\S{0,200}secret=
    | \b(?:A3-|[A-Z0-9]{4,7}-)(?=[A-Z-]{0,30}\d)(?:[A-Z0-9]{4,11}-){2,8}[A-Z0-9]{4,7}\b
        | \bkind:\s*["']?secret\b.{0,300}\bdata: | \b[5KL][1-9A-HJ-NP-Za-km-z]{50,51}\b
    """,
    re.VERBOSE,
)
CARD = re.compile(r"(?<![\d.-])\d(?:[ -]?\d){12,18}(?![\d])")
ISSUER = re.compile(
    r"4(?:\d{12}|\d{15}|\d{18})|5[1-5]\d{14}|2(?:2[2-9]|[3-6]\d|7[01])\d{13}|3[47]\d{13}|3(?:0[0-5]|[68]\d)\d{11}"
    r"|6(?:011|5\d\d|4[4-9]\d)\d{12}|35\d{14}|62\d{14,17}"
)
IDS = re.compile(
    r"(?<![0-9A-Fa-f])[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}(?![0-9A-Fa-f])|\b[0-7][0-9A-HJKMNP-TV-Z]{25}\b"
)
"""UUIDs and ULIDs: secret only where the text names a secret."""
NAMES = re.compile(
    rf"(?i)(?:{STRONG})s?(?![a-z])|heroku|hubspot|snyk|sendbird|squarespace|kucoin|messagebird|plaid|contribsys|"
    rf"(?<![a-z])(?:{SHORT}|credentials?)(?![a-z])|\bwallet\b"
)
HASHES = re.compile(
    r"(?i)\b(?:commit\w*|sha-?\d*|md5|hash(?:es)?|digest|checksum|etag|fingerprint|blob|tree|revision|rev|revert\w*|cherry|git"
    r"|trace\w*|span\w*|request|image|object|sum|integrity|tx|transaction|block|merge|diff|head|branch)\b|sha\d+[:-]"
)
TOKEN = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9]|[-_+/~=](?=[A-Za-z0-9])){15,}")
SHARD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_AFTER = _DATA.joinpath("pairs.txt").read_text("utf-8").split()
"""A letter, and those that may follow it."""
PAIRS = frozenset(after[0] + second for after in _AFTER for second in after[1:])
"""The pairs of letters that 96 in 100 of the pairs in our documents and identifiers are."""
STOPS = re.compile(
    r"\b(?:the|and|for|how|why|are|was|from|our|not|has|have|does|did|with|were|which|between|into)\b"
)
