// GORM against a server that speaks PostgreSQL's and MySQL's protocols: `program HOST POSTGRES_PORT MYSQL_PORT`. Tables are made and changed by AutoMigrate and the migrator, and queried.
package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"gorm.io/driver/mysql"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"
)

// User, as the first version of a program has it.
type UserBefore struct {
	ID   uint   `gorm:"primaryKey"`
	Name string `gorm:"size:40"`
}

func (UserBefore) TableName() string { return "gorm_users" }

// User, as the second version has it.
type User struct {
	ID        uint    `gorm:"primaryKey"`
	Name      string  `gorm:"size:80;not null;uniqueIndex:gorm_users_name"`
	Age       *int    `gorm:"index"`
	Balance   float64 `gorm:"type:decimal(12,2);default:0;check:gorm_balance,balance >= 0"`
	CreatedAt time.Time
	DeletedAt gorm.DeletedAt `gorm:"index"`
	Posts     []Post         `gorm:"constraint:OnDelete:CASCADE"`
	Tags      []Tag          `gorm:"many2many:gorm_user_tags"`
}

func (User) TableName() string { return "gorm_users" }

type Post struct {
	ID     uint64 `gorm:"primaryKey"`
	UserID uint   `gorm:"not null"`
	Title  string `gorm:"size:100;default:none"`
	Body   []byte
}

func (Post) TableName() string { return "gorm_posts" }

type Tag struct {
	ID   uint   `gorm:"primaryKey"`
	Name string `gorm:"size:20;unique"`
}

func (Tag) TableName() string { return "gorm_tags" }

func ok(err error) {
	if err != nil {
		panic(err)
	}
}

func holds(condition bool, what string) {
	if !condition {
		panic(what)
	}
}

func check(open gorm.Dialector) {
	db, err := gorm.Open(open, &gorm.Config{Logger: logger.Default.LogMode(logger.Silent), TranslateError: true})
	ok(err)
	ok(db.AutoMigrate(&UserBefore{}))
	ok(db.Create(&UserBefore{Name: "old"}).Error)
	ok(db.AutoMigrate(&User{}, &Post{}, &Tag{}))
	// A second time there is nothing to do.
	ok(db.AutoMigrate(&User{}, &Post{}, &Tag{}))
	age := 3
	ann := User{Name: "ann", Age: &age, Posts: []Post{{Title: "one", Body: []byte{0, 255}}, {}}, Tags: []Tag{{Name: "red"}, {Name: "green"}}}
	ok(db.Create(&ann).Error)
	var found User
	ok(db.Preload("Posts").Preload("Tags").First(&found, "name = ?", "ann").Error)
	holds(len(found.Posts) == 2 && len(found.Tags) == 2 && *found.Age == 3 && found.Posts[1].Title == "none", "what was stored is not found")
	holds(errors.Is(db.Create(&User{Name: "ann"}).Error, gorm.ErrDuplicatedKey), "a name is there twice")
	holds(errors.Is(db.Create(&Post{UserID: 999}).Error, gorm.ErrForeignKeyViolated), "a post of nobody")
	holds(db.Model(&found).Update("balance", -1).Error != nil, "a balance below zero")
	ok(db.Transaction(func(tx *gorm.DB) error {
		var locked User
		ok(tx.Clauses(clause.Locking{Strength: "UPDATE"}).First(&locked, ann.ID).Error)
		holds(tx.Transaction(func(*gorm.DB) error { return errors.New("back") }) != nil, "a savepoint")
		return tx.Model(&locked).Update("age", gorm.Expr("age + ?", 1)).Error
	}))
	ok(db.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "name"}}, DoUpdates: clause.AssignmentColumns([]string{"balance"})}).Create(&User{Name: "ann", Balance: 7.5}).Error)
	ok(db.First(&found, ann.ID).Error)
	holds(*found.Age == 4 && found.Balance == 7.5, "what was changed is not found")
	var counts []struct {
		Name string
		N    int64
	}
	ok(db.Model(&User{}).Select("gorm_users.name, count(gorm_posts.id) AS n").Joins("LEFT JOIN gorm_posts ON gorm_posts.user_id = gorm_users.id").Group("gorm_users.name").Order("1").Scan(&counts).Error)
	holds(len(counts) == 2 && counts[0].N == 2 && counts[1].N == 0, fmt.Sprint(counts))
	migrator := db.Migrator()
	holds(migrator.HasTable(&User{}) && migrator.HasColumn(&User{}, "balance") && migrator.HasIndex(&User{}, "gorm_users_name"), "what was made is not seen")
	holds(migrator.HasConstraint(&User{}, "gorm_balance"), "the check is not seen")
	ok(migrator.RenameColumn(&User{}, "age", "years"))
	ok(migrator.RenameColumn(&User{}, "years", "age"))
	ok(migrator.DropConstraint(&User{}, "gorm_balance"))
	ok(migrator.DropIndex(&User{}, "gorm_users_name"))
	columns, err := migrator.ColumnTypes(&User{})
	ok(err)
	holds(len(columns) == 6, "columns")
	tables, err := migrator.GetTables()
	ok(err)
	holds(len(tables) >= 4, fmt.Sprint(tables))
	ok(db.Delete(&ann).Error)
	holds(errors.Is(db.First(&User{}, ann.ID).Error, gorm.ErrRecordNotFound), "what was deleted is found")
	ok(migrator.DropTable("gorm_user_tags", &Tag{}, &Post{}, &User{}))
}

func main() {
	host, pg, my := os.Args[1], os.Args[2], os.Args[3]
	check(postgres.Open(fmt.Sprintf("host=%s port=%s user=postgres dbname=postgres sslmode=disable", host, pg)))
	fmt.Println("  GORM, postgres: ok")
	check(mysql.Open(fmt.Sprintf("root@tcp(%s:%s)/test?parseTime=true", host, my)))
	fmt.Println("  GORM, mysql: ok")
}
