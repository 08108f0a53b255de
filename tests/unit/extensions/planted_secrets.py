# ruff: noqa: E501, SIM905 -- a format a line, as it is documented
"""Two hundred planted secrets, by the formats that their issuers document, and harmless questions beside them.

The formats were listed before the patterns were written. Each maker gives a whole query, as a developer or an agent
would type it; `planted` draws them with a seed, so no two runs differ.
"""

import base64
import random
import string

LOWER, UPPER, DIGITS = string.ascii_lowercase, string.ascii_uppercase, string.digits
ALNUM, HEX = LOWER + UPPER + DIGITS, "0123456789abcdef"
URLSAFE, BASE64 = ALNUM + "-_", ALNUM + "+/"
WORDS = (
    "abandon ability absent acid actor adapt afraid album alley amount anchor angle antenna apple arch arrow atom "
    "aunt autumn bacon bamboo banner basket beach bicycle blanket bonus bracket bridge broom bubble burger cabin cactus "
    "camera candy carbon castle cement chapter cherry circle clever cloud coconut copper coral cradle cricket crystal"
).split()
NAMES = "winter hunter dragon falcon summer tiger orange maple rocket velvet copper shadow".split()


def text(r, letters, count):
    return "".join(r.choice(letters) for _ in range(count))


def word(r):
    """A password as people choose it."""
    name = r.choice(NAMES)
    return r.choice(
        [f"{name}{r.randint(1, 99)}", f"{name.title()}{r.randint(1000, 2030)}!", f"{name[:3]}3t-{name}"]
    )


def strong(r):
    """A password as managers make it; no quotes, spaces or separators of addresses."""
    return text(r, LOWER, 3) + text(r, ALNUM + "!#%^*_-", 10) + text(r, DIGITS, 2)


def card(r, start, count):
    """A number of a card that passes Luhn's check."""
    digits = [*map(int, start), *(r.randrange(10) for _ in range(count - len(start) - 1))]
    doubled = [d if i % 2 else sum(divmod(2 * d, 10)) for i, d in enumerate(reversed(digits))]
    return "".join(map(str, digits)) + str(-sum(doubled) % 10)


def grouped(number, sign):
    return sign.join(number[i : i + 4] for i in range(0, len(number), 4))


def b64(text_):
    return base64.b64encode(text_.encode()).decode()


def uuid(r):
    return "-".join(text(r, HEX, n) for n in (8, 4, 4, 4, 12))


MAKERS = [
    # assignments: environments, files, code
    lambda r: f"why is DB_PASSWORD={word(r)} rejected",
    lambda r: f"export OPENAI_API_KEY={text(r, ALNUM, 32)}",
    lambda r: f"POSTGRES_PASSWORD: {word(r)} in docker compose",
    lambda r: f'"password": "{word(r)}", "user": "ana"',
    lambda r: f"{{'api_key': '{text(r, ALNUM, 20)}'}}",
    lambda r: f"$env:GITHUB_TOKEN = '{text(r, ALNUM, 40)}'",
    lambda r: f"set MYSQL_PWD={word(r)}",
    lambda r: f"spring.datasource.password={strong(r)}",
    lambda r: f"SECRET_KEY = '{text(r, ALNUM + '!@#%^&*()', 50)}'",
    lambda r: f"APP_KEY=base64:{b64(text(r, ALNUM, 32))}",
    lambda r: f"secret_key_base: {text(r, HEX, 128)}",
    lambda r: f"const apiToken = `{text(r, ALNUM, 24)}`;",
    lambda r: f"client-secret: {text(r, ALNUM + '~._', 40)}",
    lambda r: f"<password>{word(r)}</password> in settings.xml",
    lambda r: f"JWT_SECRET={word(r)}",
    lambda r: f'stripe.api_key = "{text(r, ALNUM, 24)}"',
    lambda r: f"passwd={word(r)}",
    lambda r: f"pw: {word(r)}",
    lambda r: f"DB_PASS={word(r)} DB_HOST=localhost npm start",
    lambda r: f"PGPASSWORD={word(r)} psql -h db.internal",
    lambda r: f"//registry.example.org/:_authToken={text(r, ALNUM, 36)}",
    lambda r: f"credentials: ana / {strong(r)}",
    lambda r: f"ENCRYPTION_KEY={text(r, HEX, 64)}",
    lambda r: f"Kennwort: {word(r)}",
    lambda r: f"contraseña={word(r)}",
    lambda r: f"mot de passe : {word(r)}",
    lambda r: f"aws_secret_access_key = {text(r, BASE64, 40)}",
    lambda r: f"AWS_SESSION_TOKEN={text(r, BASE64, 200)}",
    lambda r: f"machine api.example.org login ana password {word(r)}",
    # command lines
    lambda r: f"deploy --user ana --password {word(r)}",
    lambda r: f"cli login --token={text(r, ALNUM, 16)}",
    lambda r: f"tool --api-key {text(r, ALNUM, 20)} sync",
    lambda r: f"curl -u ana:{word(r)} https://api.example.org/v1",
    lambda r: f"curl --user ana:{strong(r)} https://api.example.org",
    lambda r: f"curl -H 'X-Api-Key: {text(r, ALNUM, 24)}' https://api.example.org",
    lambda r: f'curl -H "Authorization: token {text(r, HEX, 40)}" https://git.example.org',
    lambda r: f"mysql -u root -p{word(r)} shop",
    lambda r: f"sshpass -p {word(r)} ssh root@10.0.0.7",
    lambda r: f"redis-cli -h cache -a {strong(r)} ping",
    lambda r: f"docker login -u ana -p {strong(r)}",
    lambda r: f"wget --http-password={word(r)} ftp://files.example.org/x",
    lambda r: f"az storage blob list --account-key {b64(text(r, ALNUM, 64))}",
    lambda r: f"openssl enc -aes-256-cbc -k {word(r)} -in a",
    lambda r: f"net use Z: \\\\srv\\share /user:ana {strong(r)}",
    # headers and addresses
    lambda r: f"Authorization: Bearer {text(r, URLSAFE, 40)}",
    lambda r: f"authorization: Basic {b64('ana:' + word(r))}",
    lambda r: f"Cookie: sessionid={text(r, HEX, 32)}",
    lambda r: f"Set-Cookie: connect.sid=s%3A{text(r, URLSAFE, 32)}",
    lambda r: f"postgres://app:{word(r)}@db.internal:5432/shop times out",
    lambda r: f"mongodb+srv://ana:{strong(r)}@cluster0.example.net/test",
    lambda r: f"redis://:{word(r)}@cache:6379/0",
    lambda r: f"https://ana:{text(r, ALNUM, 20)}@git.example.org/x.git",
    lambda r: f"amqps://svc:{word(r)}@mq.example.org/vhost",
    lambda r: f"jdbc:mysql://db/shop?user=ana&password={word(r)}",
    lambda r: f"https://api.example.org/v1/items?api_key={text(r, ALNUM, 24)}",
    lambda r: f"https://api.example.org/cb#access_token={text(r, URLSAFE, 40)}&state=1",
    lambda r: f"https://acct.blob.core.windows.net/c/b?sv=2022-11-02&sp=r&sig={text(r, ALNUM, 43)}%3D",
    lambda r: f"https://b.s3.amazonaws.com/k?X-Amz-Credential=a&X-Amz-Signature={text(r, HEX, 64)}",
    lambda r: f"https://{text(r, HEX, 32)}@o1.ingest.sentry.io/42",
    lambda r: f"otpauth://totp/Ex:ana?secret={text(r, UPPER + '234567', 16)}&issuer=Ex",
    # hooks
    lambda r: (
        f"https://hooks.slack.com/services/T{text(r, UPPER + DIGITS, 8)}/B{text(r, UPPER + DIGITS, 10)}/{text(r, ALNUM, 24)}"
    ),
    lambda r: f"https://discord.com/api/webhooks/{text(r, DIGITS, 18)}/{text(r, URLSAFE, 68)}",
    lambda r: f"https://discordapp.com/api/webhooks/{text(r, DIGITS, 18)}/{text(r, URLSAFE, 68)} fails",
    lambda r: (
        f"https://acme.webhook.office.com/webhookb2/{uuid(r)}@{uuid(r)}/IncomingWebhook/{text(r, HEX, 32)}/{uuid(r)}"
    ),
    lambda r: (
        f"https://prod-12.westeurope.logic.azure.com:443/workflows/{text(r, HEX, 32)}/triggers/manual/paths/invoke?sig={text(r, URLSAFE, 43)}"
    ),
    lambda r: f"https://chat.googleapis.com/v1/spaces/AAAA/messages?key=x&token={text(r, URLSAFE, 43)}",
    lambda r: f"https://hooks.zapier.com/hooks/catch/{text(r, DIGITS, 7)}/{text(r, LOWER + DIGITS, 7)}",
    lambda r: f"https://api.telegram.org/bot{text(r, DIGITS, 10)}:AA{text(r, URLSAFE, 33)}/getMe",
    # connection strings
    lambda r: (
        f"DefaultEndpointsProtocol=https;AccountName=acct;AccountKey={b64(text(r, ALNUM, 64))};EndpointSuffix=core.windows.net"
    ),
    lambda r: (
        f"Endpoint=sb://x.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey={text(r, BASE64, 43)}="
    ),
    lambda r: f"Server=db;Database=shop;User Id=sa;Pwd={word(r)};",
    lambda r: f"HostName=h.azure-devices.net;DeviceId=d;SharedAccessKey={text(r, BASE64, 43)}=",
    lambda r: f"host=db user=app password={word(r)} dbname=shop",
    lambda r: f"db.internal:5432:shop:app:{strong(r)} in .pgpass",
    # issuers' own formats
    lambda r: "AKIA" + text(r, UPPER + "234567", 16),
    lambda r: "ASIA" + text(r, UPPER + "234567", 16) + " has no permission",
    lambda r: "is ghp_" + text(r, ALNUM, 36) + " still valid",
    lambda r: "github_pat_" + text(r, ALNUM, 22) + "_" + text(r, ALNUM, 59),
    lambda r: "gho_" + text(r, ALNUM, 36),
    lambda r: "glpat-" + text(r, URLSAFE, 20),
    lambda r: "glrt-" + text(r, URLSAFE, 20),
    lambda r: "gldt-" + text(r, URLSAFE, 20),
    lambda r: "xoxb-" + text(r, DIGITS, 12) + "-" + text(r, DIGITS, 12) + "-" + text(r, ALNUM, 24),
    lambda r: "xapp-1-A" + text(r, UPPER + DIGITS, 10) + "-" + text(r, DIGITS, 12) + "-" + text(r, HEX, 64),
    lambda r: "sk_live_" + text(r, ALNUM, 24),
    lambda r: "rk_test_" + text(r, ALNUM, 24),
    lambda r: "whsec_" + text(r, ALNUM, 32),
    lambda r: "sk-ant-api03-" + text(r, URLSAFE, 93) + "AA",
    lambda r: "sk-proj-" + text(r, URLSAFE, 60),
    lambda r: "AIza" + text(r, URLSAFE, 35),
    lambda r: "ya29." + text(r, URLSAFE, 60),
    lambda r: "GOCSPX-" + text(r, URLSAFE, 28),
    lambda r: "1//0" + text(r, URLSAFE, 60),
    lambda r: "SG." + text(r, URLSAFE, 22) + "." + text(r, URLSAFE, 43),
    lambda r: "SK" + text(r, HEX, 32),
    lambda r: "AC" + text(r, HEX, 32) + " " + text(r, HEX, 32),
    lambda r: "key-" + text(r, HEX, 32),
    lambda r: text(r, HEX, 32) + "-us" + text(r, DIGITS, 2),
    lambda r: "npm_" + text(r, ALNUM, 36),
    lambda r: "pypi-AgEIcHlwaS5vcmc" + text(r, URLSAFE, 70),
    lambda r: "hf_" + text(r, LOWER + UPPER, 34),
    lambda r: "dop_v1_" + text(r, HEX, 64),
    lambda r: "shpat_" + text(r, HEX, 32),
    lambda r: "dapi" + text(r, HEX, 32),
    lambda r: "hvs." + text(r, URLSAFE, 90),
    lambda r: "lin_api_" + text(r, ALNUM, 40),
    lambda r: "ntn_" + text(r, DIGITS, 11) + text(r, ALNUM, 35),
    lambda r: "secret_" + text(r, ALNUM, 43),
    lambda r: "PMAK-" + text(r, HEX, 24) + "-" + text(r, HEX, 34),
    lambda r: "dckr_pat_" + text(r, URLSAFE, 27),
    lambda r: "rubygems_" + text(r, HEX, 48),
    lambda r: "NRAK-" + text(r, UPPER + DIGITS, 27),
    lambda r: "glsa_" + text(r, ALNUM, 32) + "_" + text(r, HEX, 8),
    lambda r: "sntryu_" + text(r, HEX, 64),
    lambda r: "pscale_tkn_" + text(r, URLSAFE, 43),
    lambda r: "sq0atp-" + text(r, URLSAFE, 22),
    lambda r: "EAAC" + text(r, ALNUM, 120),
    lambda r: text(r, ALNUM, 14) + ".atlasv1." + text(r, URLSAFE, 64),
    lambda r: "ATATT3xFfGF0" + text(r, URLSAFE, 120),
    lambda r: "sl." + text(r, URLSAFE, 135),
    lambda r: "figd_" + text(r, URLSAFE, 40),
    lambda r: "pplx-" + text(r, ALNUM, 48),
    lambda r: "LTAI" + text(r, ALNUM, 20),
    lambda r: "MT" + text(r, ALNUM, 22) + "." + text(r, ALNUM, 6) + "." + text(r, URLSAFE, 27),
    lambda r: text(r, DIGITS, 9) + ":AA" + text(r, URLSAFE, 33) + " bot does not answer",
    lambda r: text(r, ALNUM, 3) + "8Q~" + text(r, URLSAFE, 34),
    lambda r: "fm2_" + text(r, BASE64, 120),
    lambda r: "age-secret-key-1".upper() + text(r, "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58),
    lambda r: "A3-" + "-".join(text(r, UPPER + DIGITS, n) for n in (6, 6, 5, 5, 5, 5)),
    # what has a form of its own
    lambda r: f"eyJ{text(r, URLSAFE, 30)}.eyJ{text(r, URLSAFE, 60)}.{text(r, URLSAFE, 43)}",
    lambda r: "-----BEGIN RSA PRIVATE KEY-----\n" + text(r, BASE64, 64),
    lambda r: "-----BEGIN OPENSSH PRIVATE KEY----- " + text(r, BASE64, 64),
    lambda r: "PuTTY-User-Key-File-3: ssh-ed25519 Private-Lines: 1 " + text(r, BASE64, 64),
    lambda r: f"root:$6${text(r, ALNUM, 8)}${text(r, ALNUM + './', 86)}:19000:0:",
    lambda r: f"admin:$apr1${text(r, ALNUM, 8)}${text(r, ALNUM + './', 22)}",
    lambda r: f"$2b$12${text(r, ALNUM + './', 53)}",
    lambda r: "is " + card(r, "4", 16) + " charged twice",
    lambda r: grouped(card(r, "55", 16), " "),
    lambda r: grouped(card(r, "4", 16), "-") + " declined",
    lambda r: "amex " + card(r, "37", 15),
    lambda r: " ".join(r.sample(WORDS, 12)),
    lambda r: "seed phrase " + " ".join(r.sample(WORDS, 24)),
    lambda r: "5" + r.choice("HJK") + text(r, "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz", 49),
    lambda r: "0x" + text(r, HEX, 64) + " wallet",
    # nothing but random
    lambda r: text(r, BASE64, 40),
    lambda r: text(r, HEX, 40),
    lambda r: "connect with " + text(r, HEX, 64),
    lambda r: "use " + text(r, ALNUM, 24),
    lambda r: "try " + text(r, URLSAFE, 43) + " again",
    lambda r: "log in with " + text(r, LOWER + DIGITS, 32),
    # said
    lambda r: f"the password is {word(r)}",
    lambda r: f"my password for the vpn is {strong(r)}",
    lambda r: f"password {word(r)} does not work",
    lambda r: f"log in as ana with password {word(r)}",
    lambda r: f"the api key is {text(r, ALNUM, 20)}",
    lambda r: f"token {text(r, HEX, 32)} expired",
    lambda r: f"use {word(r)} as the password",
    lambda r: f"the PIN is {text(r, DIGITS, 4)}",
    lambda r: f"2fa code {text(r, DIGITS, 6)}",
    lambda r: f"heroku api key {uuid(r)}",
    lambda r: f"username ana pass {word(r)}",
    lambda r: f"my wifi passphrase is {' '.join(r.sample(WORDS, 4))}",
    lambda r: f"recovery code {text(r, HEX, 5)}-{text(r, HEX, 5)}",
]


def planted(count=200, seed=2121):
    """Queries with a secret each, drawn with a seed: every maker once, then some again."""
    r = random.Random(seed)  # noqa: S311 -- they guard nothing
    makers = [*MAKERS, *r.sample(MAKERS, max(0, count - len(MAKERS)))]
    return [make(r) for make in makers[:count]]


HARMLESS = r"""
password reset flow
what is the api key rotation policy
why is the access token expired after an hour
how do we hash passwords with argon2id
password is wrong after migration
the token is missing in the request header
the secret is stored in vault, not in the repository
where do we keep secrets for staging
token bucket rate limiter
tokens per minute on 2026-03-01
session affinity on the load balancer
session is lost after deploy
what does the --password flag of docker login do
--token is ignored by the cli
is --api-key required for local use
how to pass --password-stdin
Bearer token authentication in fastapi
basic auth behind nginx
basic authentication middleware tests
authorization header is stripped by the proxy
auth: refactor the middleware
auth: what did we decide about refresh tokens
cookie consent banner
set-cookie samesite lax in safari
the cookie is not sent cross-site
csrf token mismatch in django forms
api key vs oauth2 client credentials
API_KEY environment variable naming
OPENAI_API_KEY is not set error in ci
DB_PASSWORD is missing from the compose file
DB_PASSWORD= is empty in .env.example
password=$DB_PASSWORD in the helm chart
password: ${DB_PASSWORD} in values.yaml
token={{ secrets.GITHUB_TOKEN }} in the workflow
api_key=os.environ["OPENAI_API_KEY"]
secret = get_secret("stripe") raises KeyError
password = getpass.getpass() hangs in docker
const token = req.headers.authorization
token = tokenizer.encode(text)
api_key=<your-key> in the readme
password=*** in the logs
PASSWORD=changeme is still in the docs, remove it
rotate the signing key of webhooks
webhook retries and idempotency
slack webhook url validation
https://hooks.slack.com/services is blocked by the firewall
discord webhook rate limits
https://example.org/a/b?x=1&y=%20z#frag
https://github.com/acme/app/pull/1234/files
https://docs.example.org/auth/api-keys
postgres://localhost:5432/shop refuses connections
postgresql://user@db.internal/app in settings
redis://cache:6379/0 timeouts
git@github.com:acme/app.git clone fails
ssh -p 2222 deploy@host.internal
mkdir -p build/artifacts
docker run -p 8080:80 nginx
curl -u flag meaning
curl -sS https://api.example.org/health returns 503
mysql -u root -p prompts forever
pip install -U pip fails on 3.13
what changed in commit 9fceb02d0ae598e95dc970b74767f19372d61af8
revert 9fceb02
why does 4b825dc642cb6eb9a060e54bf8d69288fbee4904 show up as an empty tree
sha256 e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 image digest mismatch
md5 d41d8cd98f00b204e9800998ecf8427e of empty file
git bisect between a1b2c3d and f00dbabe
550e8400-e29b-41d4-a716-446655440000
what is session 123e4567-e89b-12d3-a456-426614174000 about
entry 6ba7b810-9dad-11d1-80b4-00c04fd430c8 is missing
trace 4bf92f3577b34da6a3ce929d0e0e4736
request id 01ARZ3NDEKTSV4RRFFQ69G5FAV
src/store/schema.ts
engine/steelyard/stores/sqlite/schema.py
/var/log/nginx/access-2026-03-01.log
C:\Users\ana\AppData\Local\Temp\build-2026-11-28
docs/adr/0042-use-postgres-14-instead-of-mysql-8.md
2026-03-01-retry-policy-v2-draft3.md
tests/unit/test_reads_v2_tables_from_parquet_2026.py
getUserByIdFromCacheV2
base64ToUtf8String
XMLHttpRequestUpload
test_reads_v2_tables_from_parquet fails
MAX_RERANK_CANDIDATES_P95_MS
snake_case_name_with_many_parts_2
com.acme.payments.v2.PaymentServiceImpl
UserServiceV2Impl.createUserWithEmail2FA
all-MiniLM-L6-v2 embeddings
sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2
claude-3-5-sonnet-20241022 context window
gpt-4o-mini-2024-07-18 pricing
text-embedding-3-large dimensions
meta-llama/Llama-3.1-70B-Instruct
v1.2.3-rc.1
ubuntu-22.04.3-live-server-amd64.iso
python3.11-slim-bookworm
node_modules/.pnpm/react-dom@18.2.0_react@18.2.0
numpy-1.26.4-cp311-cp311-manylinux_2_17_x86_64.whl
kubectl get pods -n payments-7d9f8b6c5-x2x4z
pod checkout-api-6b7c9d8f5d-k8s2p crashes
arn:aws:iam::123456789012:role/deploy
s3://acme-prod-logs/2026/03/01/part-00000.parquet
us-east-1a availability zone
10.0.0.0/16 cidr overlap
2001:0db8:85a3:0000:0000:8a2e:0370:7334
00:1A:2B:3C:4D:5E mac address
0x1F4A9
error 0x80070005 on install
#ff8800 as the accent colour
2026-03-01T12:34:56.789Z parse error
unix time 1767225600000
order 1234567890123456 is stuck
ticket PROJ-12345 and PROJ-12346
phone +49 30 123456789
4111 is the test prefix of visa cards
luhn check for card numbers
pin numpy to 1.26
pin: numpy version in constraints
pin dependencies by hash
otp input component focus
2fa enrolment for admins
two factor codes are rejected
seed phrase backup screen design
private key rotation runbook
-----BEGIN CERTIFICATE----- parsing in go
what is a jwt
jwt claims for tenants
eyJ prefix of base64 json
bcrypt cost 12 or argon2
why is AKIA in the key id
ghp_ prefix for personal tokens
sk-learn pipelines vs pandas
sk_buff leak in the kernel module
pk_id column naming
task-force-meeting-2026-notes
npm_config_registry is ignored
hf_transfer speeds up downloads
key: value pairs in yaml
primary key vs unique key
foreign key constraint fails on users.id
key=lambda x: x[1] in sorted
sort key is not stable
cache key: user id plus locale
keyboard shortcut ctrl+shift+p
passport scanning library
passenger nginx config
compass map direction
secret santa list of the office
kubernetes secrets vs configmaps
pass: dict as argument in python
pass --strict to mypy
tests pass locally but fail in ci
author: ana, reviewed by ben
authority: who approves the release
token: expired
token count is 128000
max_tokens=4096 for summaries
num_tokens: 512
tokenizer=cl100k_base
credential helper osxkeychain on mac
credentials: where are they loaded from
login: redirect loop after sso
user: admin cannot delete projects
Größenänderung löscht den Sitzplan
Passwort vergessen Ablauf
mot de passe oublié
腾讯云 部署 密码 重置
don't use agents
GB/s
how does the deploy job cache wheels between runs on the self hosted runner
reranker latency budget p95 under 200ms
""".strip().splitlines()
