#!/usr/bin/env python3
"""SQLAlchemy 2 against a server that speaks PostgreSQL's and MySQL's protocols: `sqlalchemy_program.py HOST POSTGRES_PORT MYSQL_PORT`. ORM, window functions,
documents, views, and reflection of what was made."""

import decimal
import sys

from sqlalchemy import JSON, DateTime, Integer, MetaData, Numeric, String, create_engine, delete, func, inspect, select, text, update
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column


def models(prefix):
    class Base(DeclarativeBase):
        pass

    class User(Base):
        __tablename__ = f"{prefix}_users"
        id: Mapped[int] = mapped_column(primary_key=True)
        name: Mapped[str] = mapped_column(String(50), unique=True)
        age: Mapped[int | None]
        created = mapped_column(DateTime, server_default=func.now())

    class Post(Base):
        __tablename__ = f"{prefix}_posts"
        id: Mapped[int] = mapped_column(primary_key=True)
        user_id: Mapped[int] = mapped_column(Integer, index=True)
        title: Mapped[str] = mapped_column(String(100))
        price = mapped_column(Numeric(10, 2))
        data = mapped_column(JSON)

    return Base, User, Post


def check(engine, prefix):
    Base, User, Post = models(prefix)
    Base.metadata.drop_all(engine)
    Base.metadata.create_all(engine)
    with Session(engine) as session:
        ann, bob = User(name="ann", age=3), User(name="bob")
        session.add_all([ann, bob])
        session.flush()
        session.add_all([Post(user_id=ann.id, title="a", price=decimal.Decimal("1.5"), data={"k": [1]}), Post(user_id=ann.id, title="b", price=2)])
        session.commit()
        rows = session.execute(
            select(User.name, func.count(Post.id), func.sum(Post.price))
            .outerjoin(Post, Post.user_id == User.id).group_by(User.name).order_by(User.name)
        ).all()
        assert [tuple(row) for row in rows] == [("ann", 2, decimal.Decimal("3.50")), ("bob", 0, None)], rows
        rows = session.execute(
            select(User.name, func.row_number().over(order_by=User.id), func.lag(User.name).over(order_by=User.id)).order_by(User.id)
        ).all()
        assert [tuple(row) for row in rows] == [("ann", 1, None), ("bob", 2, "ann")], rows
        assert session.scalar(select(Post.data).where(Post.title == "a")) == {"k": [1]}
        session.execute(update(User).where(User.name == "ann").values(age=User.age + 1))
        session.execute(delete(Post).where(Post.title == "b"))
        session.commit()
        assert session.scalar(select(User.age).where(User.name == "ann")) == 4
    with engine.begin() as connection:
        connection.execute(text(f"CREATE VIEW {prefix}_titles AS SELECT id, title FROM {prefix}_posts"))
    seen = inspect(engine)
    assert {f"{prefix}_users", f"{prefix}_posts"} <= set(seen.get_table_names())
    columns = {column["name"]: column for column in seen.get_columns(f"{prefix}_posts")}
    assert list(columns) == ["id", "user_id", "title", "price", "data"], columns
    assert columns["price"]["nullable"] and not columns["title"]["nullable"]
    assert columns["title"]["type"].length == 100 and columns["price"]["type"].scale == 2
    assert seen.get_pk_constraint(f"{prefix}_posts")["constrained_columns"] == ["id"]
    assert ["user_id"] in [index["column_names"] for index in seen.get_indexes(f"{prefix}_posts")]
    assert ["name"] in [unique["column_names"] for unique in seen.get_unique_constraints(f"{prefix}_users")]
    assert f"{prefix}_titles" in seen.get_view_names()
    assert [column["name"] for column in seen.get_columns(f"{prefix}_titles")] == ["id", "title"]
    metadata = MetaData()
    metadata.reflect(engine, only=[f"{prefix}_users", f"{prefix}_posts"])
    with engine.begin() as connection:
        assert connection.execute(select(metadata.tables[f"{prefix}_users"].c.name).order_by(text("1"))).scalars().all() == ["ann", "bob"]
        connection.execute(text(f"DROP VIEW {prefix}_titles"))
    Base.metadata.drop_all(engine)


def main():
    host, postgres, mysql = sys.argv[1:4]
    check(create_engine(f"postgresql+psycopg://postgres@{host}:{postgres}/shop"), "p")
    check(create_engine(f"mysql+pymysql://root@{host}:{mysql}/shop"), "m")
    print("SQLAlchemy: ok")


if __name__ == "__main__":
    main()
