#!/usr/bin/env python3
"""Alembic against a server that speaks PostgreSQL's and MySQL's protocols: `alembic_program.py HOST POSTGRES_PORT MYSQL_PORT`. A history of migrations goes up, down and up
again, and what it made is what the models say, as `alembic check` finds out."""

import pathlib
import sys
import tempfile

from alembic import command
from alembic.config import Config
from sqlalchemy import create_engine, inspect, text

ENVIRONMENT = """
from alembic import context
from sqlalchemy import create_engine
from models import metadata

engine = create_engine(context.config.get_main_option("sqlalchemy.url"))
with engine.connect() as connection:
    context.configure(connection=connection, target_metadata=metadata, compare_type=True, transaction_per_migration=True)
    with context.begin_transaction():
        context.run_migrations()
"""
MODELS = """
import sqlalchemy as sa

metadata = sa.MetaData()
sa.Table(
    "al_users",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("full_name", sa.String(120), nullable=False),
    sa.Column("email", sa.String(80)),
    sa.Column("balance", sa.Numeric(12, 2), server_default=sa.text("0"), nullable=False),
    sa.Column("created", sa.DateTime, server_default=sa.func.now()),
    sa.UniqueConstraint("email", name="al_users_email"),
    sa.Index("al_users_name", "full_name", "balance"),
)
sa.Table(
    "al_notes",
    metadata,
    sa.Column("id", sa.BigInteger, primary_key=True),
    sa.Column("user_id", sa.Integer, sa.ForeignKey("al_users.id", name="al_notes_user", ondelete="CASCADE"), nullable=False, index=True),
    sa.Column("body", sa.Text),
    sa.Column("data", sa.JSON),
)
"""
REVISIONS = [
    """
def upgrade():
    op.create_table("al_people", sa.Column("id", sa.Integer, primary_key=True), sa.Column("name", sa.String(40), nullable=False), sa.Column("age", sa.Integer))
    people = sa.table("al_people", sa.column("name", sa.String), sa.column("age", sa.Integer))
    op.bulk_insert(people, [{"name": "ann", "age": 3}, {"name": "bob", "age": None}])

def downgrade():
    op.drop_table("al_people")
""",
    """
def upgrade():
    op.rename_table("al_people", "al_users")
    op.add_column("al_users", sa.Column("email", sa.String(80)))
    op.add_column("al_users", sa.Column("balance", sa.Numeric(12, 2), server_default=sa.text("0"), nullable=False))
    op.add_column("al_users", sa.Column("created", sa.DateTime, server_default=sa.func.now()))
    op.alter_column("al_users", "name", new_column_name="full_name", existing_type=sa.String(40), existing_nullable=False)
    op.alter_column("al_users", "full_name", type_=sa.String(120), existing_type=sa.String(40), existing_nullable=False)
    op.drop_column("al_users", "age")
    op.create_unique_constraint("al_users_email", "al_users", ["email"])
    op.create_index("al_users_name", "al_users", ["full_name", "balance"])

def downgrade():
    op.drop_index("al_users_name", table_name="al_users")
    op.drop_constraint("al_users_email", "al_users", type_="unique")
    op.add_column("al_users", sa.Column("age", sa.Integer))
    op.alter_column("al_users", "full_name", new_column_name="name", existing_type=sa.String(120), existing_nullable=False)
    for name in ("created", "balance", "email"):
        op.drop_column("al_users", name)
    op.rename_table("al_users", "al_people")
""",
    """
def upgrade():
    op.create_table("al_notes", sa.Column("id", sa.BigInteger, primary_key=True), sa.Column("user_id", sa.Integer, nullable=False), sa.Column("body", sa.String(20)), sa.Column("data", sa.JSON))
    op.create_index("ix_al_notes_user_id", "al_notes", ["user_id"])
    op.create_foreign_key("al_notes_user", "al_notes", "al_users", ["user_id"], ["id"], ondelete="CASCADE")
    op.alter_column("al_notes", "body", type_=sa.Text, existing_type=sa.String(20))
    op.alter_column("al_notes", "body", nullable=False, existing_type=sa.Text)
    op.alter_column("al_notes", "body", nullable=True, existing_type=sa.Text)

def downgrade():
    op.drop_constraint("al_notes_user", "al_notes", type_="foreignkey")
    op.drop_table("al_notes")
""",
]


def check(url):
    with tempfile.TemporaryDirectory() as directory:
        place = pathlib.Path(directory)
        (place / "versions").mkdir()
        (place / "env.py").write_text(ENVIRONMENT)
        (place / "models.py").write_text(MODELS)
        before = None
        for number, body in enumerate(REVISIONS):
            head = f"import sqlalchemy as sa\nfrom alembic import op\nrevision = 'r{number}'\ndown_revision = {before!r}\n"
            (place / f"versions/r{number}.py").write_text(head + body)
            before = f"r{number}"
        sys.path.insert(0, directory)
        config = Config()
        config.set_main_option("script_location", directory)
        config.set_main_option("path_separator", "os")
        config.set_main_option("sqlalchemy.url", url)
        command.upgrade(config, "head")
        # Raises if the models differ from what is there.
        command.check(config)
        engine = create_engine(url)
        with engine.begin() as connection:
            connection.execute(text("INSERT INTO al_notes (id, user_id, body) SELECT 1, id, 'x' FROM al_users WHERE full_name = 'ann'"))
            assert connection.scalar(text("SELECT COUNT(*) FROM al_users WHERE balance = 0 AND email IS NULL")) == 2
        [key] = inspect(engine).get_foreign_keys("al_notes")
        assert (key["referred_table"], key["constrained_columns"], key["options"].get("ondelete")) == ("al_users", ["user_id"], "CASCADE"), key
        command.downgrade(config, "r0")
        assert [column["name"] for column in inspect(engine).get_columns("al_people")] == ["id", "name", "age"]
        command.upgrade(config, "head")
        command.check(config)
        command.downgrade(config, "base")
        assert [name for name in inspect(engine).get_table_names() if name.startswith("al_")] == []
        with engine.begin() as connection:
            connection.execute(text("DROP TABLE alembic_version"))
        sys.path.remove(directory)
        sys.modules.pop("models", None)


def main():
    host, postgres, mysql = sys.argv[1:]
    check(f"postgresql+psycopg://postgres@{host}:{postgres}/postgres")
    check(f"mysql+pymysql://root@{host}:{mysql}/test")
    print("  Alembic: ok")


if __name__ == "__main__":
    main()
