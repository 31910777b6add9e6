"""The names of languages: of each its ISO 639 codes, its name in English and in itself, and of those that are met most
often also in other languages whose speakers keep tables. All in lower case."""

_TABLE = """
af afr: afrikaans
am amh: amharic, አማርኛ
ar ara arb: arabic, العربية, عربي, arabisch, arabe, árabe, arabo, arabski, арабский, 아랍어, アラビア語, 阿拉伯语, 阿拉伯語
as asm: assamese, অসমীয়া
az aze: azerbaijani, azeri, azərbaycanca, azərbaycan dili
ba bak: bashkir, башҡортса
be bel: belarusian, беларуская
bg bul: bulgarian, български, bulgarisch, bulgare
bn ben: bengali, bangla, বাংলা
bo bod tib: tibetan, བོད་སྐད
br bre: breton, brezhoneg
bs bos: bosnian, bosanski
ca cat: catalan, català, katalanisch
ceb: cebuano, sinugbuanong binisaya
co cos: corsican, corsu
cs ces cze: czech, čeština, česky, tschechisch, tchèque, checo, ceco, czeski, чешский, 체코어, チェコ語, 捷克语
cy cym wel: welsh, cymraeg, walisisch
da dan: danish, dansk, dänisch, danois, danés, danese, duński, датский, 덴마크어, デンマーク語, 丹麦语
de deu ger: german, deutsch, allemand, alemán, tedesco, alemão, duits, niemiecki, tyska, tysk, немецкий, 독일어, ドイツ語, 德语, 德文, 德語
dv div: dhivehi, ދިވެހި
el ell gre: greek, ελληνικά, griechisch, grec, griego, greco, grecki, греческий, 그리스어, ギリシャ語, 希腊语
en eng: english, englisch, anglais, inglés, inglese, inglês, engels, angielski, engelska, engelsk, englanti, angličtina, английский, англійська, ingilizce, 영어, 영문, 英語, 英语, 英文, الإنجليزية, tiếng anh, bahasa inggris
eo epo: esperanto
es spa: spanish, castilian, español, castellano, spanisch, espagnol, spagnolo, espanhol, spaans, hiszpański, spanska, spansk, испанский, ispanyolca, 스페인어, スペイン語, 西班牙语
et est: estonian, eesti, eesti keel, estnisch
eu eus baq: basque, euskara, baskisch
fa fas per pes: persian, farsi, فارسی, persisch
fi fin: finnish, suomi, finnisch, finnois, finés, finlandese, fiński, финский, 핀란드어, フィンランド語, 芬兰语
fil: filipino
fo fao: faroese, føroyskt
fr fra fre: french, français, französisch, francés, francese, francês, frans, francuski, franska, fransk, ranska, французский, fransızca, 프랑스어, 불어, フランス語, 法语, 法文, 法語
fy fry: frisian, west frisian, frysk
ga gle: irish, gaeilge, irisch
gd gla: scottish gaelic, gàidhlig
gl glg: galician, galego
gn grn: guarani, avañe'ẽ
gu guj: gujarati, ગુજરાતી
ha hau: hausa
haw: hawaiian, ʻōlelo hawaiʻi
he heb iw: hebrew, עברית, hebräisch, hébreu, hebreo, ebraico, иврит, 히브리어, ヘブライ語
hi hin: hindi, हिन्दी, हिंदी, 힌디어, ヒンディー語, 印地语
hmn: hmong, hmoob
hr hrv: croatian, hrvatski, kroatisch, croate
hsb: upper sorbian, hornjoserbšćina, obersorbisch
dsb: lower sorbian, dolnoserbšćina, niedersorbisch
ht hat: haitian creole, haitian, kreyòl ayisyen
hu hun: hungarian, magyar, ungarisch, hongrois, húngaro, ungherese, węgierski, венгерский, 헝가리어, ハンガリー語, 匈牙利语
hy hye arm: armenian, հայերեն
id ind: indonesian, bahasa indonesia, indonesisch, 인도네시아어, インドネシア語, 印尼语, 印度尼西亚语
ig ibo: igbo
is isl ice: icelandic, íslenska, isländisch
it ita: italian, italiano, italienisch, italien, italiaans, włoski, italienska, italiensk, итальянский, 이탈리아어, イタリア語, 意大利语
ja jpn: japanese, 日本語, 日语, 日文, japanisch, japonais, japonés, giapponese, japonês, japans, japoński, японский, 일본어, 일어, 일문
jv jav: javanese, basa jawa
ka kat geo: georgian, ქართული
kk kaz: kazakh, қазақша, қазақ тілі
km khm: khmer, ខ្មែរ, ភាសាខ្មែរ
kn kan: kannada, ಕನ್ನಡ
ko kor: korean, 한국어, 한글, 국문, 조선말, koreanisch, coréen, coreano, koreański, корейский, korece, 韓国語, 韩语, 韩文, 韓語, tiếng hàn
ku kur kmr: kurdish, kurmanji, kurdî
ckb: sorani, central kurdish, کوردی
ky kir: kyrgyz, кыргызча
la lat: latin, latina, lateinisch
lb ltz: luxembourgish, lëtzebuergesch
lg lug: ganda, luganda
ln lin: lingala
lo lao: lao, ລາວ
lt lit: lithuanian, lietuvių, litauisch
lv lav: latvian, latviešu, lettisch
mg mlg: malagasy
mi mri mao: maori, māori, te reo māori
mk mkd mac: macedonian, македонски
ml mal: malayalam, മലയാളം
mn mon: mongolian, монгол
mr mar: marathi, मराठी
ms msa may zsm: malay, bahasa melayu
mt mlt: maltese, malti
my mya bur: burmese, မြန်မာ, မြန်မာဘာသာ
nb nob: norwegian bokmål, bokmål, norsk bokmål
ne nep: nepali, नेपाली
nl nld dut: dutch, nederlands, flemish, vlaams, niederländisch, néerlandais, neerlandés, holandés, olandese, holandês, holenderski, niderlandzki, нидерландский, голландский, 네덜란드어, オランダ語, 荷兰语
nn nno: norwegian nynorsk, nynorsk, norsk nynorsk
no nor: norwegian, norsk, norwegisch, norvégien, noruego, norvegese, norweski, норвежский, 노르웨이어, ノルウェー語, 挪威语
ny nya: chichewa, nyanja
oc oci: occitan
or ori ory: odia, oriya, ଓଡ଼ିଆ
pa pan: punjabi, panjabi, ਪੰਜਾਬੀ
pl pol: polish, polski, polnisch, polonais, polaco, polacco, polonês, pools, польский, 폴란드어, ポーランド語, 波兰语
ps pus: pashto, پښتو
pt por: portuguese, português, portugiesisch, portugais, portugués, portoghese, portugees, portugalski, португальский, portekizce, 포르투갈어, ポルトガル語, 葡萄牙语
qu que: quechua, runasimi
rm roh: romansh, rumantsch
rn run: kirundi, rundi
ro ron rum: romanian, română, rumänisch, roumain, rumano, romeno, rumuński, румынский, 루마니아어, ルーマニア語, 罗马尼亚语
ru rus: russian, русский, russisch, russe, ruso, russo, rosyjski, ryska, rusça, російська, 러시아어, 노어, ロシア語, 俄语, 俄文
rw kin: kinyarwanda, ikinyarwanda
sa san: sanskrit, संस्कृतम्
sd snd: sindhi, سنڌي
se sme: northern sami, davvisámegiella
si sin: sinhala, sinhalese, සිංහල
sk slk slo: slovak, slovenčina, slowakisch, slovaque
sl slv: slovenian, slovene, slovenščina, slowenisch, slovène
sm smo: samoan, gagana samoa
sn sna: shona
so som: somali, soomaali
sq sqi alb: albanian, shqip, albanisch
sr srp: serbian, српски, srpski, serbisch, serbe
st sot: sesotho, southern sotho
su sun: sundanese, basa sunda
sv swe: swedish, svenska, schwedisch, suédois, sueco, svedese, szwedzki, svensk, ruotsi, шведский, 스웨덴어, スウェーデン語, 瑞典语
sw swa: swahili, kiswahili
ta tam: tamil, தமிழ்
te tel: telugu, తెలుగు
tg tgk: tajik, тоҷикӣ
th tha: thai, ไทย, ภาษาไทย, thailändisch, thaï, tailandés, tailandese, тайский, 태국어, タイ語, 泰语
ti tir: tigrinya, ትግርኛ
tk tuk: turkmen, türkmençe
tl tgl: tagalog
tn tsn: tswana, setswana
tr tur: turkish, türkçe, türkisch, turc, turco, turks, turecki, турецкий, 터키어, 튀르키예어, トルコ語, 土耳其语
tt tat: tatar, татарча
ug uig: uyghur, ئۇيغۇرچە
uk ukr: ukrainian, українська, ukrainisch, ukrainien, ucraniano, ucraino, ukraiński, украинский, 우크라이나어, ウクライナ語, 乌克兰语
ur urd: urdu, اردو
uz uzb: uzbek, oʻzbekcha, o'zbekcha
vi vie: vietnamese, tiếng việt, vietnamesisch, vietnamien, vietnamita, вьетнамский, 베트남어, ベトナム語, 越南语
wo wol: wolof
xh xho: xhosa, isixhosa
yi yid: yiddish, ייִדיש
yo yor: yoruba, yorùbá
yue: cantonese, 廣東話, 粵語, 粤语
zh zho chi cmn: chinese, mandarin, 中文, 汉语, 漢語, 普通话, 中国語, chinesisch, chinois, chino, cinese, chinês, chinees, chiński, kinesiska, kinesisk, китайский, çince, 중국어, 중문, tiếng trung
zu zul: zulu, isizulu
"""  # noqa: E501
# ISO 639-1 codes of languages without a line of their own.
_OTHER_CODES = (
    "aa ab ae ak an av ay bi bm ce ch cr cu cv dz ee ff fj gv ho hz ia ie ii ik io iu kg ki kj kl kr ks kv kw li lu mh "
    "na nd ng nr nv oj om os pi sc sg ss to ts tw ty ve vo wa za"
)

NAMES: dict[str, str] = {}
"""Name of a language → its shortest code: `deutsch` → `de`."""
CODES: dict[str, str] = {code: code for code in _OTHER_CODES.split()}
"""Any code of a language → its shortest code: `ger` → `de`."""

for _line in _TABLE.strip().splitlines():
    _codes, _, _names = _line.partition(": ")
    _shortest = _codes.split()[0]
    CODES.update(dict.fromkeys(_codes.split(), _shortest))
    NAMES.update(dict.fromkeys(_names.split(", "), _shortest))
