#!/usr/bin/env python3
"""Django against a server that speaks PostgreSQL's and MySQL's protocols: `django_program.py HOST POSTGRES_PORT MYSQL_PORT`. Migrations of its own applications and of one
with a history, the administration, queries, introspection, dumps and flush. Each protocol has a process of its own: Django is set up once in one."""

import datetime
import decimal
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import checks
from checks import check, equal

MODELS = """
from django.db import models

class Tag(models.Model):
    name = models.CharField(max_length=40, unique=True)

class Author(models.Model):
    full_name = models.CharField(max_length=80)
    email = models.EmailField(unique=True, null=True)
    rating = models.DecimalField(max_digits=6, decimal_places=2, default=1)
    class Meta:
        indexes = [models.Index(fields=["full_name", "rating"], name="author_name_rating")]
        constraints = [models.CheckConstraint(condition=models.Q(rating__gte=0), name="author_rating_positive")]

class Book(models.Model):
    author = models.ForeignKey(Author, models.CASCADE, related_name="books")
    title = models.CharField(max_length=120)
    pages = models.BigIntegerField(default=0)
    published = models.DateTimeField(null=True)
    day = models.DateField(null=True)
    data = models.JSONField(default=dict)
    key = models.UUIDField(null=True)
    cover = models.BinaryField(default=b"")
    in_print = models.BooleanField(default=True)
    tags = models.ManyToManyField(Tag)
    class Meta:
        constraints = [models.UniqueConstraint(fields=["author", "title"], name="book_author_title")]
"""
HEAD = "from django.db import migrations, models\nimport django.db.models.deletion\n\nclass Migration(migrations.Migration):\n"
MIGRATIONS = {
    "0001_initial": """    initial = True
    dependencies = []
    operations = [
        migrations.CreateModel("Author", [("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")), ("name", models.CharField(max_length=40)), ("age", models.IntegerField(null=True))]),
        migrations.CreateModel("Book", [
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            ("author", models.ForeignKey("shop.Author", django.db.models.deletion.CASCADE, related_name="books")),
            ("title", models.CharField(max_length=60)),
            ("pages", models.IntegerField(default=0)),
        ]),
    ]
""",
    "0002_rows": """    dependencies = [("shop", "0001_initial")]
    def fill(apps, editor):
        author = apps.get_model("shop", "Author").objects.create(name="Old", age=70)
        apps.get_model("shop", "Book").objects.create(author=author, title="First", pages=10)
    operations = [migrations.RunPython(fill, migrations.RunPython.noop)]
""",
    "0003_fields": """    dependencies = [("shop", "0002_rows")]
    operations = [
        migrations.AddField("Author", "email", models.EmailField(max_length=254, unique=True, null=True)),
        migrations.AddField("Author", "rating", models.DecimalField(max_digits=5, decimal_places=2, default=1)),
        migrations.RenameField("Author", "name", "full_name"),
        migrations.AlterField("Author", "full_name", models.CharField(max_length=80)),
        migrations.AlterField("Author", "rating", models.DecimalField(max_digits=6, decimal_places=2, default=1)),
        migrations.RemoveField("Author", "age"),
        migrations.AlterField("Book", "title", models.CharField(max_length=120)),
        migrations.AlterField("Book", "pages", models.BigIntegerField(default=0)),
        migrations.AddField("Book", "published", models.DateTimeField(null=True)),
        migrations.AddField("Book", "day", models.DateField(null=True)),
        migrations.AddField("Book", "data", models.JSONField(default=dict)),
        migrations.AddField("Book", "key", models.UUIDField(null=True)),
        migrations.AddField("Book", "cover", models.BinaryField(default=b"")),
        migrations.AddField("Book", "in_print", models.BooleanField(default=True)),
    ]
""",
    "0004_tags": """    dependencies = [("shop", "0003_fields")]
    operations = [
        migrations.CreateModel("Label", [("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")), ("name", models.CharField(max_length=40, unique=True))]),
        migrations.AddField("Book", "tags", models.ManyToManyField("shop.Label")),
        migrations.RenameModel("Label", "Tag"),
        migrations.AddIndex("Author", models.Index(fields=["full_name", "rating"], name="author_name_rating")),
        migrations.AddIndex("Book", models.Index(fields=["pages"], name="book_pages")),
        migrations.RemoveIndex("Book", "book_pages"),
        migrations.AddConstraint("Author", models.CheckConstraint(condition=models.Q(rating__gte=0), name="author_rating_positive")),
        migrations.AddConstraint("Book", models.UniqueConstraint(fields=["author", "title"], name="book_author_title")),
    ]
""",
}
URLS = "from django.contrib import admin\nfrom django.urls import path\nurlpatterns = [path('admin/', admin.site.urls)]\n"
ADMIN = "from django.contrib import admin\nfrom shop import models\nfor model in (models.Author, models.Book, models.Tag):\n    admin.site.register(model)\n"


def set_up(directory, kind, host, port):
    """Writes the application and sets Django up."""
    place = pathlib.Path(directory)
    (place / "shop/migrations").mkdir(parents=True)
    for name, text in {"shop/__init__": "", "shop/models": MODELS, "shop/admin": ADMIN, "shop/migrations/__init__": "", "urls": URLS}.items():
        (place / f"{name}.py").write_text(text)
    for name, text in MIGRATIONS.items():
        (place / f"shop/migrations/{name}.py").write_text(HEAD + text)
    sys.path.insert(0, directory)
    if kind == "mysql":
        import pymysql

        pymysql.version_info = (2, 2, 1, "final", 0)
        pymysql.install_as_MySQLdb()
    database = {
        "postgres": {"ENGINE": "django.db.backends.postgresql", "NAME": "postgres", "USER": "postgres"},
        "mysql": {"ENGINE": "django.db.backends.mysql", "NAME": "test", "USER": "root"},
    }[kind]
    from django.conf import settings

    processors = ["django.template.context_processors.request", "django.contrib.auth.context_processors.auth", "django.contrib.messages.context_processors.messages"]
    settings.configure(
        DATABASES={"default": dict(database, HOST=host, PORT=int(port))},
        INSTALLED_APPS=[*(f"django.contrib.{name}" for name in ("admin", "auth", "contenttypes", "sessions", "messages", "redirects", "sites", "flatpages")), "shop"],
        SITE_ID=1,
        SECRET_KEY="x",
        ROOT_URLCONF="urls",
        ALLOWED_HOSTS=["*"],
        USE_TZ=True,
        TIME_ZONE="UTC",
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],
        MIDDLEWARE=[
            "django.contrib.sessions.middleware.SessionMiddleware",
            "django.contrib.auth.middleware.AuthenticationMiddleware",
            "django.contrib.messages.middleware.MessageMiddleware",
        ],
        TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True, "OPTIONS": {"context_processors": processors}}],
    )
    import django

    django.setup()


def command(*words, **options):
    from django.core.management import call_command

    out = io.StringIO()
    call_command(*words, stdout=out, **options)
    return out.getvalue()


@check
def migrations_go_through():
    command("migrate", verbosity=1)
    equal([line for line in command("showmigrations", "--plan").splitlines() if not line.startswith("[X]")], [])
    equal(command("makemigrations", "--dry-run", verbosity=1).strip(), "No changes detected")
    from shop.models import Author, Book

    old = Author.objects.get()
    equal((old.full_name, old.rating, old.email), ("Old", decimal.Decimal(1), None))
    equal([(book.title, book.pages, book.data, book.in_print) for book in Book.objects.all()], [("First", 10, {}, True)])


def is_ours(vendor):
    """True for Lycosa through the protocol of a vendor."""
    from django.db import connection

    if connection.vendor != vendor:
        return False
    with connection.cursor() as cursor:
        cursor.execute("SELECT version()")
        return "lycosa" in cursor.fetchone()[0].lower()


def goes_back():
    """False where a migration that is taken back changes the schema behind a savepoint, which Lycosa refuses in PostgreSQL's dialect."""
    return not is_ours("postgresql")


@check
def migrations_go_back_and_forth():
    if not goes_back():
        return
    command("migrate", "shop", "0002", verbosity=0)
    command("migrate", "shop", verbosity=0)
    from shop.models import Book

    equal(Book.objects.get().title, "First")


@check
def constraints_hold():
    from django.db import IntegrityError, transaction
    from shop.models import Author, Book

    old = Author.objects.get()
    Author.objects.create(full_name="A", email="a@example.com")
    for wrong in (
        lambda: Author.objects.create(full_name="B", email="a@example.com"),
        lambda: Author.objects.create(full_name="C", rating=-1),
        lambda: Book.objects.create(author=old, title="First"),
    ):
        try:
            with transaction.atomic():
                wrong()
        except IntegrityError:
            continue
        raise AssertionError("a constraint does not hold")
    Author.objects.exclude(pk=old.pk).delete()


@check
def queries_find_what_they_should():
    from django.db import transaction
    from django.db.models import Avg, Case, CharField, Count, Exists, F, Max, OuterRef, Prefetch, Q, Subquery, Sum, Value, When, Window
    from django.db.models.functions import Coalesce, Concat, Lower, Rank, RowNumber, TruncMonth, Upper
    from shop.models import Author, Book, Tag

    authors = [Author.objects.create(full_name=f"Author {n}", email=f"{n}@example.com", rating=n) for n in range(5)]
    tags = [Tag.objects.create(name=name) for name in ("red", "green")]
    moment = datetime.datetime(2024, 2, 29, 12, 30, 15, 123456, datetime.timezone.utc)
    books = Book.objects.bulk_create(
        [
            Book(author=authors[n % 5], title=f"Book {n}", pages=n * 10, published=moment + datetime.timedelta(days=n), day=moment.date(), data={"n": n, "list": [1, {"a": None}]}, cover=bytes(range(n)))
            for n in range(20)
        ]
    )
    first = Book.objects.get(title="Book 3")
    equal((first.published, first.data["n"], bytes(first.cover)), (moment + datetime.timedelta(days=3), 3, b"\0\1\2"))
    first.tags.add(*tags)
    equal(sorted(first.tags.values_list("name", flat=True)), ["green", "red"])
    counted = Author.objects.filter(full_name__startswith="Author").annotate(n=Count("books"), pages=Sum("books__pages"), most=Max("books__pages")).order_by("full_name")
    equal([(a.n, a.pages, a.most) for a in counted], [(4, 300 + 40 * n, 150 + 10 * n) for n in range(5)])
    latest = Book.objects.filter(author=OuterRef("pk")).order_by("-pages")
    found = Author.objects.annotate(best=Subquery(latest.values("title")[:1]), has=Exists(latest)).filter(has=True, full_name__startswith="Author").order_by("id")
    equal([a.best for a in found], [f"Book {15 + n}" for n in range(5)])
    ranked = Book.objects.filter(pages__gte=100).annotate(at=Window(RowNumber(), partition_by=[F("author")], order_by=[F("pages").desc()]), rank=Window(Rank(), order_by=[F("pages").asc()])).order_by("id")
    equal([b.at for b in ranked][:5], [2] * 5)
    equal(Book.objects.filter(data__n=7).get().title, "Book 7")
    equal(Book.objects.filter(data__list__0=1).count(), 20)
    equal(Book.objects.filter(data__has_key="n").count(), 20)
    equal(Book.objects.filter(Q(title__icontains="BOOK 1") | Q(pages__lt=20), ~Q(title="Book 1")).count(), 12)
    equal(Book.objects.filter(title__regex=r"^Book 1\d$").count(), 10)
    equal(Book.objects.filter(published__year=2024, published__month=3).count(), 19)
    equal(Book.objects.filter(published__date=datetime.date(2024, 3, 1)).count(), 1)
    months = Book.objects.exclude(published=None).annotate(m=TruncMonth("published")).values("m").annotate(c=Count("id")).order_by("m")
    equal([(m["m"].month, m["c"]) for m in months], [(2, 1), (3, 19)])
    named = Author.objects.filter(pk=authors[2].pk).annotate(x=Concat(Lower("full_name"), Value("/"), Upper("email"), output_field=CharField()), y=Coalesce("email", Value(""), output_field=CharField()), z=Case(When(rating__gt=1, then=Value("high")), default=Value("low"))).get()
    equal((named.x, named.y, named.z), ("author 2/2@EXAMPLE.COM", "2@example.com", "high"))
    equal(Book.objects.aggregate(a=Avg("pages"))["a"] is not None, True)
    equal(Book.objects.filter(title="Book 4").update(pages=F("pages") + 1), 1)
    with transaction.atomic():
        locked = Book.objects.select_for_update().get(title="Book 4")
        locked.pages += 1
        locked.save()
        try:
            with transaction.atomic():
                locked.delete()
                raise RuntimeError
        except RuntimeError:
            pass
    equal(Book.objects.get(title="Book 4").pages, 42)
    with transaction.atomic():
        equal(len(Book.objects.select_for_update(skip_locked=True).filter(pages__lt=50)), 6)
    equal(Book.objects.select_related("author").get(title="Book 6").author.full_name, "Author 1")
    equal(len(Author.objects.prefetch_related(Prefetch("books", Book.objects.filter(pages__gt=0))).all()), 6)
    again, is_new = Author.objects.get_or_create(email="1@example.com", defaults={"full_name": "x"})
    equal((again.pk, is_new), (authors[1].pk, False))
    Author.objects.bulk_create([Author(full_name="Renamed", email="0@example.com")], update_conflicts=True, update_fields=["full_name"], **({"unique_fields": ["email"]} if upserts_name_columns() else {}))
    equal(Author.objects.get(email="0@example.com").full_name, "Renamed")
    equal(list(Book.objects.filter(pages__lt=20).values_list("title", flat=True).union(Book.objects.filter(pages__gt=180).values_list("title", flat=True)).order_by("title")), ["Book 0", "Book 1", "Book 19", "First"])
    equal(authors[4].delete()[0], 5)
    equal(Book.objects.dates("day", "month")[0], datetime.date(2024, 2, 1))
    equal(len(list(Book.objects.iterator(chunk_size=3))), 17)


def upserts_name_columns():
    from django.db import connection

    return connection.features.supports_update_conflicts_with_target


@check
def the_administration_works():
    from django.contrib.auth.models import Group, User
    from django.test import Client
    from shop.models import Author, Tag

    User.objects.create_superuser("admin", "a@example.com", "password")
    client = Client()
    equal(client.login(username="admin", password="password"), True)
    author = Author.objects.order_by("id").first()
    for page in ("", "auth/user/", "auth/user/?q=adm", "auth/user/add/", "auth/group/", "shop/book/", "shop/book/add/", f"shop/author/{author.pk}/change/", f"shop/author/{author.pk}/delete/", f"shop/author/{author.pk}/history/", "shop/book/?o=-2"):
        equal((page, client.get(f"/admin/{page}").status_code), (page, 200))
    equal(client.post("/admin/auth/group/add/", {"name": "editors"}).status_code, 302)
    equal(client.post("/admin/shop/tag/add/", {"name": "blue"}).status_code, 302)
    equal(client.post("/admin/shop/tag/add/", {"name": "blue"}).status_code, 200)
    tag = Tag.objects.get(name="blue")
    equal(client.post(f"/admin/shop/tag/{tag.pk}/change/", {"name": "navy"}).status_code, 302)
    equal(client.post(f"/admin/shop/tag/{tag.pk}/delete/", {"post": "yes"}).status_code, 302)
    equal((Group.objects.get().name, Tag.objects.filter(name="navy").exists()), ("editors", False))


@check
def tables_are_read_back():
    text = command("inspectdb", "shop_book", "shop_author", "auth_user")
    # Results of ours through MySQL's protocol do not say which columns are never null.
    text = text.replace("models.DO_NOTHING, blank=True, null=True", "models.DO_NOTHING").replace(", blank=True, null=True", "")
    for line in ("class ShopBook(models.Model):", "author = models.ForeignKey('ShopAuthor', models.DO_NOTHING)", "title = models.CharField(max_length=120)", "rating = models.DecimalField(max_digits=6, decimal_places=2)", "is_staff = models.", "unique_together = (('author', 'title'),)"):
        if line not in text:
            raise AssertionError(f"{line!r} is not in\n{text}")


@check
def dumps_are_loaded():
    from shop.models import Author, Book

    before = json.loads(command("dumpdata", "shop"))
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(before, file)
        file.flush()
        command("flush", interactive=False, verbosity=0)
        equal((Author.objects.count(), Book.objects.count()), (0, 0))
        command("loaddata", file.name, verbosity=0)
    equal(json.loads(command("dumpdata", "shop")), before)
    last = Author.objects.order_by("id").last().pk
    equal(Author.objects.create(full_name="Next").pk > last, True)


@check
def everything_is_taken_back():
    command("flush", interactive=False, verbosity=0)
    if not goes_back():
        return
    for name in ("shop", "flatpages", "redirects", "sites", "sessions", "admin"):
        command("migrate", name, "zero", verbosity=0)
    from django.db import connection

    equal([name for name in connection.introspection.table_names() if name.startswith("shop_")], [])


def main():
    if len(sys.argv) == 5:
        with tempfile.TemporaryDirectory() as directory:
            set_up(directory, *sys.argv[2:])
            checks.run()
    host, postgres, mysql = sys.argv[1:]
    codes = []
    for kind, port in (("postgres", postgres), ("mysql", mysql)):
        print(f"  {kind}: ", flush=True)
        codes.append(subprocess.run([sys.executable, os.path.abspath(__file__), "one", kind, host, port], check=False).returncode)
    sys.exit(1 if any(codes) else 0)


if __name__ == "__main__":
    main()
