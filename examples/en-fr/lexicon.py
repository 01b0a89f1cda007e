"""The words of the example language: nouns, adjectives, verbs, names, and how they are written down.

The tables are plain text, one entry a line, frequent words first: the corpus draws from each list with Zipf-like
weights. `en = fr` separates the languages, `/` gives an irregular plural, `_` stands for a space inside an entry,
and `*` before a word marks that it does not take the form used before a vowel (h aspiré; English "a university").
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from english import EnglishVerb, english_plural
from french import feminine, french_plural

Gender = Literal["m", "f"]


@dataclass(frozen=True)
class Noun:
    """A noun with both numbers in both languages; `kind` names the block it stands in."""

    en: tuple[str, str]
    fr: tuple[str, str]
    gender: Gender
    kind: str


@dataclass(frozen=True)
class Adjective:
    """An adjective; `fr` holds masculine, feminine; `before` says that it stands before its noun in French."""

    en: str
    fr: tuple[str, str]
    before: bool
    kinds: frozenset[str]


@dataclass(frozen=True)
class Verb:
    """A verb with its frame: prepositions of the object in both languages and the kinds of its object and subject."""

    en: EnglishVerb
    en_preposition: str
    fr: str
    fr_preposition: str
    objects: tuple[str, ...]
    subjects: tuple[str, ...]
    flags: frozenset[str]


@dataclass(frozen=True)
class Name:
    """A proper name; `gender` of a country decides its prepositions ("p" for plural countries)."""

    en: str
    fr: str
    gender: str


_NOUNS = """
[person]
man/men = homme m
woman/women = femme f
child/children = enfant m
girl = fille f
boy = garçon m
teacher = professeur m
doctor = médecin m
neighbour = voisin m
student = étudiant m
friend = ami m
nurse = infirmière f
baker = boulanger m
waiter = serveur m
king = roi m
queen = reine f
lawyer = avocat m
journalist = journaliste m
pupil = élève m
guest = invité m
boss/bosses = patron m
farmer = agriculteur m
secretary = secrétaire f
writer = écrivain m
actress/actresses = actrice f
driver = chauffeur m
policeman/policemen = policier m
cook = cuisinier m
engineer = ingénieur m
judge = juge m
mayor = maire m
waitress/waitresses = serveuse f
tourist = touriste m
princess/princesses = princesse f
painter = peintre m
hero/heroes = *héros/*héros m
soldier = soldat m
gardener = jardinier m
witch/witches = sorcière f
thief/thieves = voleur m
librarian = bibliothécaire f
fireman/firemen = pompier m
fisherman/fishermen = pêcheur m
plumber = plombier m
widow = veuve f
captain = capitaine m
hairdresser = coiffeuse f
[relative]
mother = mère f
father = père m
sister = sœur f
brother = frère m
son = fils/fils m
daughter = fille f
aunt = tante f
uncle = oncle m
grandmother = grand-mère/grands-mères f
grandfather = grand-père/grands-pères m
wife/wives = femme f
husband = mari m
niece = nièce f
nephew = neveu/neveux m
[animal]
dog = chien m
cat = chat m
horse = cheval/chevaux m
bird = oiseau/oiseaux m
cow = vache f
mouse/mice = souris/souris f
rabbit = lapin m
goat = chèvre f
hen = poule f
bear = ours/ours m
duck = canard m
wolf/wolves = loup m
fox/foxes = renard m
donkey = âne m
squirrel = écureuil m
owl = *hibou/*hiboux m
swallow = hirondelle f
turtle = tortue f
hedgehog = *hérisson m
[food]
apple = pomme f
cake = gâteau/gâteaux m
egg = œuf m
orange = orange f
potato/potatoes = pomme_de_terre/pommes_de_terre f
tomato/tomatoes = tomate f
pear = poire f
sandwich/sandwiches = sandwich/sandwichs m
carrot = carotte f
strawberry/strawberries = fraise f
biscuit = biscuit m
onion = oignon m
cherry/cherries = cerise f
mushroom = champignon m
lemon = citron m
pancake = crêpe f
peach/peaches = pêche f
bean = *haricot m
pineapple = ananas/ananas m
apricot = abricot m
[dish]
bread = pain m
cheese = fromage m
soup = soupe f
meat = viande f
rice = riz m
chocolate = chocolat m
salad = salade f
butter = beurre m
ham = jambon m
jam = confiture f
honey = miel m
[drink]
water = eau f
coffee = café m
milk = lait m
tea = thé m
wine = vin m
orange_juice = jus_d'orange m
beer = bière f
lemonade = limonade f
[text]
book = livre m
letter = lettre f
newspaper = journal/journaux m
story/stories = histoire f
article = article m
message = message m
novel = roman m
report = rapport m
poem = poème m
page = page f
contract = contrat m
magazine = magazine m
review = critique f
dictionary/dictionaries = dictionnaire m
[clothes]
coat = manteau/manteaux m
shirt = chemise f
dress/dresses = robe f
hat = chapeau/chapeaux m
shoe = chaussure f
jacket = veste f
skirt = jupe f
scarf/scarves = écharpe f
boot = botte f
glove = gant m
tie = cravate f
*uniform = uniforme m
[thing]
key = clé f
bag = sac m
phone = téléphone m
flower = fleur f
table = table f
chair = chaise f
box/boxes = boîte f
bottle = bouteille f
picture = photo f
computer = ordinateur m
gift = cadeau/cadeaux m
glass/glasses = verre m
umbrella = parapluie m
lamp = lampe f
watch/watches = montre f
suitcase = valise f
knife/knives = couteau/couteaux m
plate = assiette f
toy = jouet m
ring = bague f
ball = ballon m
painting = tableau/tableaux m
camera = appareil_photo/appareils_photo m
pen = stylo m
clock = horloge f
mirror = miroir m
candle = bougie f
ladder = échelle f
notebook = cahier m
hammer = marteau/marteaux m
tent = tente f
carpet = tapis/tapis m
axe = *hache f
basket = panier m
[vehicle]
car = voiture f
bike = vélo m
boat = bateau/bateaux m
lorry/lorries = camion m
motorbike = moto f
[transport]
train = train m
bus/buses = bus/bus m
plane = avion m
[instrument]
piano/pianos = piano m
guitar = guitare f
violin = violon m
harp = *harpe f
[room]
garden = jardin m
kitchen = cuisine f
street = rue f
park = parc m
forest = forêt f
village = village m
castle = château/châteaux m
living_room = salon m
bedroom = chambre f
cave = grotte f
[public]
school = école f
station = gare f
market = marché m
hospital = hôpital/hôpitaux m
office = bureau/bureaux m
restaurant = restaurant m
museum = musée m
library/libraries = bibliothèque f
beach/beaches = plage f
church/churches = église f
hotel = hôtel m
theatre = théâtre m
airport = aéroport m
bakery/bakeries = boulangerie f
factory/factories = usine f
*university/*universities = université f
bank = banque f
harbour = port m
town_hall = mairie f
swimming_pool = piscine f
[building]
house = maison f
city/cities = ville f
shop = magasin m
bridge = pont m
farm = ferme f
island = île f
tower = tour f
[event]
film = film m
concert = concert m
meeting = réunion f
party/parties = fête f
lesson = leçon f
match/matches = match/matchs m
trip = voyage m
exam = examen m
wedding = mariage m
performance = spectacle m
conference = conférence f
race = course f
[idea]
question = question f
problem = problème m
song = chanson f
idea = idée f
game = jeu/jeux m
secret = secret m
mistake = erreur f
dream = rêve m
decision = décision f
rule = règle f
plan = projet m
promise = promesse f
[fact]
truth = vérité f
answer = réponse f
"""

# Person nouns that English does not mark for gender: the masculine stands in the table, the feminine here.
FEMININE_OF = {
    "neighbour": "voisine", "student": "étudiante", "friend": "amie", "baker": "boulangère", "lawyer": "avocate",
    "teacher": "professeure", "guest": "invitée", "boss": "patronne", "farmer": "agricultrice",
    "cook": "cuisinière", "gardener": "jardinière", "engineer": "ingénieure", "thief": "voleuse",
    "writer": "écrivaine",
}  # fmt: skip

_ADJECTIVES = """
< big = grand : room public building thing vehicle city clothes
< big = gros/grosse : animal food dish text
< small = petit : animal thing vehicle room public building food clothes person relative
< old = vieux~vieil/vieille : person relative animal thing vehicle clothes building public text room
< new = nouveau~nouvel/nouvelle : thing vehicle clothes building public text idea event
< beautiful = beau~bel/belle : thing clothes building room animal person public
< good = bon/bonne : food dish drink text event idea person
< young = jeune : person relative animal
< pretty = joli : clothes thing room building
< bad = mauvais : text event idea dish drink
< long = long/longue : text event clothes
tall = grand : person relative
red = rouge : thing vehicle clothes food
blue = bleu : thing vehicle clothes
white = blanc/blanche : thing vehicle clothes animal building
expensive = cher/chère : thing vehicle clothes dish food drink event public
black = noir : thing vehicle clothes animal
green = vert : thing vehicle clothes food
tired = fatigué : person relative animal
happy = heureux/heureuse : person relative
rich = riche : person
famous = célèbre : person text building public idea
interesting = intéressant : text event idea fact
heavy = lourd : thing clothes
light = léger/légère : thing clothes dish
sad = triste : person relative text event idea
intelligent = intelligent : person relative animal
strange = étrange : person text idea thing building
important = important : person text event idea public fact
difficult = difficile : event idea text
French = français : person dish drink text event vehicle
Italian = italien/italienne : person dish text event vehicle clothes
English = anglais : person text vehicle event
cold = froid : drink dish room
hot = chaud : drink dish
delicious = délicieux/délicieuse : food dish drink
funny = drôle : person text event idea
quiet = calme : person room public building animal
dirty = sale : thing clothes vehicle room animal
clean = propre : thing clothes vehicle room public
yellow = jaune : thing vehicle clothes food
kind = gentil/gentille : person relative animal
boring = ennuyeux/ennuyeuse : text event person
dangerous = dangereux/dangereuse : animal idea public building
empty = vide : thing room public building
proud = fier/fière : person relative
grey = gris : thing vehicle clothes animal
broken = cassé : thing vehicle
modern = moderne : building public thing
Spanish = espagnol : person dish drink text event
wooden = en_bois/en_bois : thing building
shy = timide : person relative
curious = curieux/curieuse : person relative animal
German = allemand : person vehicle text
brave = courageux/courageuse : person relative animal
jealous = jaloux/jalouse : person relative
fresh = frais/fraîche : food drink
lazy = paresseux/paresseuse : person animal
serious = sérieux/sérieuse : person text idea
worried = inquiet/inquiète : person relative
Japanese = japonais : person text vehicle dish
wild = sauvage : animal
ripe = mûr : food
round = rond : thing
dry = sec/sèche : clothes dish
Chinese = chinois : person dish text
"""

# base [past participle [-ing]] [preposition in brackets] = infinitive [(preposition)] : objects ; subjects ; flags
_TRANSITIVE = """
see saw seen seeing = voir : person relative animal thing building vehicle event
buy bought bought = acheter : thing clothes food dish vehicle text drink
eat ate eaten = manger : food dish ; person relative animal
read read read = lire : text
find found found = trouver : thing clothes text animal
look [for] = chercher : thing person clothes animal text
know knew known = connaître : person relative building idea ; person relative ; stative
know knew known = savoir : fact ; person relative ; stative
sell sold sold selling = vendre : thing vehicle clothes food building
write wrote written = écrire : text
like = aimer : person animal food text event drink idea ; person relative ; stative
drink drank drunk = boire : drink
wait [for] = attendre : person relative transport
lose lost lost = perdre : thing clothes text
leave left left = quitter : room public building person
help = aider : person relative
watch = regarder : film event animal
listen [to] = écouter : idea person
visit = visiter : building public
visit = rendre_visite (à) : person relative
open = ouvrir : box bottle suitcase umbrella letter gift
close = fermer : box suitcase book umbrella bag
take took taken = prendre : thing transport clothes
wear wore worn = porter : clothes
carry = porter : thing
meet met met = rencontrer : person relative
understand understood understood = comprendre : idea fact text person ; person relative ; stative
forget forgot forgotten forgetting = oublier : thing fact idea
need = avoir_besoin (de) : thing person clothes dish drink vehicle ; person relative ; stative nopassive
love = adorer : person animal food event building dish ; person relative ; stative
clean = nettoyer : room thing vehicle clothes
answer = répondre (à) : question letter message person
hear heard heard = entendre : person animal idea
repair = réparer : vehicle clock computer watch camera lamp
choose chose chosen = choisir : thing clothes text dish food
miss = rater : transport event
phone = téléphoner (à) : person relative
fear = avoir_peur (de) : animal person ; person relative animal ; stative nopassive
draw drew drawn = dessiner : animal person building flower
finish = finir : text dish game
break broke broken = casser : thing
drive drove driven = conduire : vehicle
follow = suivre : person animal vehicle ; person relative animal
build built built = construire : building
translate = traduire : text
obey = obéir (à) : person relative
describe = décrire : building person event
hide hid hidden = cacher : thing text
wash = laver : clothes vehicle plate glass bottle
pay paid paid [for] = payer : dish event vehicle food clothes
protect = protéger : person animal building
invite = inviter : person relative
prepare = préparer : dish event lesson
throw threw thrown [away] = jeter : text clothes thing
thank = remercier : person relative
resemble = ressembler (à) : relative person ; person relative ; stative nopassive
paint = peindre : building flower animal
"""

_DATIVE = """
give gave given = donner : thing text food clothes
show showed shown = montrer : thing text building clothes
tell told told = raconter : story secret dream
tell told told = dire : fact
send sent sent = envoyer : text gift flower
lend lent lent = prêter : thing vehicle text
offer = offrir : thing dish drink clothes
return = rendre : thing text vehicle
explain = expliquer : idea fact
bring brought brought = apporter : drink dish thing food
promise = promettre : gift answer
"""

_INTRANSITIVE = """
work = travailler : room public
sleep slept slept = dormir : room ; person relative animal
sing sang sung = chanter : room public
eat ate eaten = manger : room public ; person relative animal
wait = attendre : public room
dance = danser : room public
run ran run running = courir : room ; person relative animal
cry = pleurer : room public
live = vivre : building room
"""

_MOTION = """
go went gone going = aller : public
come came come = venir : public
arrive = arriver : public
return = retourner : public
"""

_SIMPLE_MOTION = """
leave left left = partir
come came come [back] = revenir
go went gone [out] = sortir
fall fell fallen = tomber
arrive = arriver
get got got getting [up] = se_lever
fall fell fallen [asleep] = s'endormir
rest = se_reposer
die died died dying = mourir
stay = rester
"""

_NAMES = {
    "female": "Marie Anna Sophie Julie Claire Emma Alice Camille Laura Isabelle Nina Louise Agathe Irène Jeanne Odile "
    "Hélène Pauline Valérie Inès Monique Élise Brigitte Zoé Colette Amélie Margot Estelle Sabine Ursule",
    "male": "Paul Pierre Thomas Luc Antoine Hugo Marc Victor Julien Nicolas Alain Émile Simon Henri Louis Arthur Éric "
    "Olivier Gilles Denis Bruno Fabien Roland Adrien Yvan Gaston Lucien Basile Ulysse Théo",
    "surname": "Martin Dubois Moreau Laurent Garnier Blanchard Roussel Lambert Fontaine Mercier Chevalier Renard "
    "Perrin Aubert Leclerc Brunet Vasseur Gaillard Picard Rolland Charpentier Besson Delmas Marchal Poirier Vidal "
    "Lacroix Tessier Bouvier Carpentier Ollivier Humbert Prévost Royer Guérin Langlois Ferrand Jacquet Weiss Imbert",
    "city": "Paris Lyon London=Londres Rome Berlin Geneva=Genève Brussels=Bruxelles Madrid Lisbon=Lisbonne Marseille "
    "Vienna=Vienne Venice=Venise Bordeaux Lille Dublin Oslo Athens=Athènes Strasbourg Nantes Cracow=Cracovie Toulouse "
    "Naples Seville=Séville Warsaw=Varsovie Antwerp=Anvers Florence Prague Montreal=Montréal Moscow=Moscou Bern=Berne",
    "country": "France:f Italy=Italie:f Spain=Espagne:f Germany=Allemagne:f Japan=Japon:m England=Angleterre:f "
    "Canada:m Portugal:m Switzerland=Suisse:f Belgium=Belgique:f Brazil=Brésil:m China=Chine:f Morocco=Maroc:m "
    "Greece=Grèce:f Mexico=Mexique:m Sweden=Suède:f Ireland=Irlande:f Norway=Norvège:f Peru=Pérou:m "
    "the_United_States=États-Unis:p the_Netherlands=Pays-Bas:p Vietnam:m Poland=Pologne:f Austria=Autriche:f",
}


def _forms(text: str) -> tuple[str, str]:
    """The two forms before and after `/` (the second may be empty)."""
    first, _, second = text.strip().replace("_", " ").partition("/")
    return first, second


def _parse_nouns() -> dict[str, list[Noun]]:
    nouns: dict[str, list[Noun]] = {}
    kind = ""
    for line in _NOUNS.strip().split("\n"):
        if line.startswith("["):
            kind = line.strip("[]")
            nouns[kind] = []
            continue
        en, fr = line.split(" = ")
        (singular, plural), (fr_singular, fr_plural) = _forms(en), _forms(fr[:-2])
        gender: Gender = "f" if fr.endswith(" f") else "m"
        nouns[kind].append(
            Noun(
                (singular, plural or english_plural(singular)),
                (fr_singular, fr_plural or french_plural(fr_singular)),
                gender,
                kind,
            )
        )
    return nouns


def _parse_adjectives() -> list[Adjective]:
    adjectives = []
    for line in _ADJECTIVES.strip().split("\n"):
        words, kinds = line.removeprefix("< ").split(" : ")
        en, fr = words.split(" = ")
        masculine, given = _forms(fr)
        forms = (masculine, given or feminine(masculine))
        adjectives.append(Adjective(en, forms, line.startswith("<"), frozenset(kinds.split())))
    return adjectives


def _parse_verb(line: str) -> Verb:
    words, _, frame = line.partition(" : ")
    en, fr = words.split(" = ")
    *forms, last = en.split()
    preposition = last.strip("[]") if last.startswith("[") else ""
    forms = forms if preposition else [*forms, last]
    infinitive, _, fr_preposition = fr.partition(" (")
    objects, subjects, flags = (*(part.strip() for part in frame.split(";")), "", "")[:3]
    return Verb(
        EnglishVerb.from_forms(forms),
        preposition,
        infinitive.replace("_", " "),
        fr_preposition.strip(")"),
        tuple(objects.split()),
        tuple(subjects.split()) or ("person", "relative"),
        frozenset(flags.split()),
    )


def _parse_verbs(table: str) -> list[Verb]:
    return [_parse_verb(line) for line in table.strip().split("\n")]


def _parse_names(kind: str) -> list[Name]:
    names = []
    for entry in _NAMES[kind].split():
        words, _, gender = entry.replace("_", " ").partition(":")
        en, _, fr = words.partition("=")
        names.append(Name(en, fr or en, gender))
    return names


NOUNS = _parse_nouns()
ADJECTIVES = _parse_adjectives()
TRANSITIVE = _parse_verbs(_TRANSITIVE)
DATIVE = _parse_verbs(_DATIVE)
INTRANSITIVE = _parse_verbs(_INTRANSITIVE)
MOTION = _parse_verbs(_MOTION)
SIMPLE_MOTION = _parse_verbs(_SIMPLE_MOTION)
NAMES = {kind: _parse_names(kind) for kind in _NAMES}
NOUN_OF = {noun.en[0]: noun for nouns in NOUNS.values() for noun in nouns}
